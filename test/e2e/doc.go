// Package e2e runs the programs as their users do, as processes with the rights
// of their own service accounts, against a real kube-apiserver and etcd, and
// looks at the world afterwards: the objects, the volumes in the storage system,
// and the log of calls to the driver.
//
// The binaries come from the folder that the variable EXEUNT_BIN names, bin/ of
// this checkout if it is not set ("make build"). Tests share clusters and run in
// parallel, each in a namespace of its own; they wait on watches and never sleep.
package e2e
