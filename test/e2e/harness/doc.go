// Package harness starts clusters for end-to-end tests: a real kube-apiserver and etcd,
// the mock CSI driver, and our programs or upstream's as processes with the rights of
// their own service accounts. A [Session] is what a test sees: a namespace of its own,
// and helpers that create objects, wait on watches, and read the storage system.
//
// Tests with the same [Setup] share a cluster. The first of them starts the cluster,
// the last of them stops it and fails if one of our programs died or was refused a
// request.
//
// EXEUNT_BIN names the folder of the programs; the default is bin of this checkout.
package harness
