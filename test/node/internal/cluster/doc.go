// Package cluster runs a cluster with one real node, for tests and for people to try: API
// server, kube-controller-manager and kube-scheduler are processes of this machine; the
// node runs the CSI driver and the programs of one side as pods, from the manifests that
// administrators apply.
package cluster
