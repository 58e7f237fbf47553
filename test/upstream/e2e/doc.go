// Package e2e builds upstream's end-to-end specs of garbage collection, unchanged, with the
// suite that upstream's e2e.test runs. "make e2e-garbage-specs" runs them against
// garbage-collector; test/e2e/garbage/specs starts the cluster.
package e2e
