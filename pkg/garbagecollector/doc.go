// Package garbagecollector runs the decisions of package garbage in a cluster. It replaces
// garbage-collector-controller of kube-controller-manager.
//
//	part          does                                                          file
//	discovery     finds the kinds to collect, every 30 s and when CRDs change   discovery.go
//	monitors      a reflector per kind, which feeds the graph and no store      monitor.go
//	workers       judge one object, decide, and execute one action              worker.go
//	barriers      read every kind after a deletion was observed, one at a time  barriers.go
//	cycles        release owners that wait for each other                       cycles.go
//	progress      events and metrics about deletions that wait                  progress.go
//
// A mutex guards the graph; no request is sent under it. Every write names the UID of the
// object, and the version that the decision rests on. A crash anywhere needs no repair: the
// next process lists the cluster and decides again.
package garbagecollector
