// Package forecast says what would happen to the pods and disks of a node if the node were deleted now: when each pod
// may go, what keeps it, and what it would miss of its grace period. It reads the cluster and writes nothing.
//
// The rules are those of package [github.com/exeunt-io/exeunt/pkg/termination/pod], asked twice for each pod: for now,
// and for L, when the pod is deleted whatever refuses its eviction. The forecast holds if nothing changes but by the drain:
// replacements that become Ready give budgets room, and then less is cut short.
package forecast
