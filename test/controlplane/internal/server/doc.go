// Package server runs embedded etcd and the real kube-apiserver in this
// process.
//
//	data directory -> listener, certificates -> etcd -> kube-apiserver -> ready
//
// Nothing is chosen twice and nothing is guessed: the API server is handed a
// listener that is already open, and etcd listens on a unix socket in a
// directory of the owner's, so that two control planes never clash and no other
// user of the machine reads or writes the storage behind the API's back.
//
// The API server runs as in production: RBAC, the watch cache and the default
// admission plugins are on. One plugin is off, see arguments.
//
// A process can run one control plane: kube-apiserver keeps its feature gates
// and metrics in package variables.
package server
