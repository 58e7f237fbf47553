// Package server runs embedded etcd and the real kube-apiserver in this
// process.
//
//	data directory -> listener, certificates -> etcd -> kube-apiserver -> ready
//
// The API server gets an open listener, and etcd listens on a unix socket in a private
// directory. So two control planes never conflict, and no other user of the machine can
// read or write the storage.
//
// The API server runs as in production: RBAC, the watch cache and the default
// admission plugins are on. One plugin is off, see arguments.
//
// With Config.Program the API server is another program, on a port, and its death ends the control plane.
//
// A process can run one control plane: kube-apiserver keeps its feature gates
// and metrics in package variables.
package server
