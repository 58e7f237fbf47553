// Package harness starts clusters for end-to-end tests: a real kube-apiserver and etcd,
// the mock CSI driver, and our programs or upstream's as processes with the rights of
// their own service accounts. A [Session] is what a test sees: a namespace of its own,
// and helpers that create objects, wait on watches, and read the storage system.
//
// Tests with the same [Setup] share a cluster. The first of them starts the cluster,
// the last of them stops it and fails if one of our programs died or was refused a
// request.
//
// The tests are in folders beside this one. Some have files with the name of their subject first:
//
//   - storage: binding, provisioning, reclaim, in-tree plugins, the journal
//   - garbage: garbage collection, on every kind and with faults
//   - programs: flags, metrics, serving, secrets in logs, leader election, fault proxies, the demo
//   - cli: exeunt audit, rollback, status and why, and the reports about deletions that wait
//   - situations: why objects are stuck, in clusters of other projects
//   - library: provisioners on the public library, beside those on upstream's
//   - faults: every CSI fault in every call, with crashes in between
//   - differential: scenarios as data, compared with kube-controller-manager
//   - nodes: machines of test/cloudmock as nodes, with all loops of kube-controller-manager
//   - teardown: what goes away with a cluster
//   - modelserver: the API server of the models, compared with a real one
//   - upstream: our programs beside upstream's, and the way there and back
//
// They need the programs ("make build"); folders that run upstream's programs also need
// "make build-upstream":
//
//	go test ./test/e2e/storage -run Reclaim
//
// EXEUNT_BIN names the folder of the programs; the default is bin of this checkout. Tests that
// fill caches by hand are in test/integration, benchmarks in test/bench.
package harness
