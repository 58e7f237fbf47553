// Package e2e holds the end-to-end tests, one folder per subject:
//
//   - binding: claims find volumes and classes; waiting objects cost no requests
//   - provisioning: volumes, clones, snapshots, secrets, topology, capacity and node deployment
//   - reclaim: deletion of CSI volumes in every order, with every policy and gate
//   - intree: the host-path plugin provisions, deletes and recycles
//   - journal: volumes whose creation has an unknown outcome
//   - leader: leader election, standby and crashes of the leader
//   - programs: flags, input errors, metrics, serving, secrets in logs, the demo
//   - faults: every CSI fault in every call, with crashes in between
//   - upstream: our programs beside upstream's, and the way there and back
//   - rollback: exeunt rollback, from our programs to upstream's
//   - status: exeunt status beside our programs, upstream's, both and none
//   - differential: scenarios as data, compared with kube-controller-manager
//
// All of them use the package harness. They need the programs ("make build"); folders
// that run upstream's programs also need "make build-upstream":
//
//	go test ./test/e2e/reclaim
//
// Tests that fill caches by hand are in test/integration, benchmarks in test/bench.
package e2e
