// Package nodes runs the machines of test/cloudmock on a real kube-apiserver, beside all loops of a real
// kube-controller-manager. Pods are those of Deployments, StatefulSets and DaemonSets; budgets are kept by the real
// disruption controller, and disks are attached by the real attach-detach controller.
package nodes
