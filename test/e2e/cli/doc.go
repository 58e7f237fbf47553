// Package cli tests the commands of exeunt on real API servers:
//
//   - audit: volumes of the storage system beside the objects
//   - delete: custom resources with a deadline, at an API server of upstream
//   - rollback: the whole way from our programs to upstream's, and single objects that must stay
//   - status: beside our programs, upstream's, both, and with nothing but volumes to be seen
//   - why: on all supported versions, without a driver, a control plane or a node that could be seen
//
// The tests of waiting check the events and metrics about deletions that wait.
package cli
