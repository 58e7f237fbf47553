// Package why explains why the deletion of an object waits, as a tree of blockers. It reads
// the cluster and writes nothing, unless probes are allowed (dry-run writes).
//
// An object is explained by the chain of its kind (packages storage, nodes, api, signal), or by
// its finalizers: chains of finalizers first, then the table of families, then the managed
// fields as a hint. Each object is in the tree once.
package why
