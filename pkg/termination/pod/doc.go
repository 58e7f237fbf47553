// Package pod decides what happens to one pod of a node that is being terminated, and reads what the decision rests on
// from the pod. It reads no clock: the caller says what time it is.
//
// L, P and the deadline are those of package [github.com/exeunt-io/exeunt/pkg/deadline]. For a DaemonSet, L is P: its
// pods serve the others, a CSI driver's pod unmounts their volumes. "#" is the row of the design.
//
//	#      kind      end               moment           answer               decision
//	10     any       running           before L         untried              Evict
//	11,14  any       running           before L         blocked, refused     Wait, retried when the budget changes
//	13,26  any       running           before L         gate not open        Wait, with what keeps the gate
//	12     any       running           from L           untried              Evict
//	12     any       running           from L           blocked, refused     Delete
//	16     any       running           from L           namespace ends       Delete
//	20     any       in time           any              any                  Wait
//	20     any       beyond P          before P - 5 s   any                  Wait
//	20     any       beyond P          from P - 5 s     any                  Shorten; a DaemonSet's pod is left
//	21,22  any       overdue, held     any              any                  Leave: the node does not wait for it
//	23     mirror    any               before the proof any                  Leave
//	23     any       finished          before the proof any                  Leave
//	25     any       running, returns  before the proof any                  Leave: it would come back for ever
//	42     any       any               proven           any                  Remove
//	24     daemon    any               proven, no volume any                 Leave: it goes with the node
//
// What holds in every state:
//
//   - Before L no pod is deleted, so no budget and no do-not-disrupt is broken. An eviction respects budgets.
//   - A pod is removed with the grace period 0 only once the machine is proven to be off.
//   - A Terminating pod is not deleted again, but once, at P - 5 s, if its grace period goes beyond P.
package pod
