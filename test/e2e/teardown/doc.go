// Package teardown has end-to-end tests of what goes away with a cluster: load balancers, snapshots and volumes. The
// programs that it needs are built by "make build build-upstream".
package teardown
