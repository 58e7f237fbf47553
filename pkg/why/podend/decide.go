// Package podend decides why a pod that was deleted still exists: its node's kubelet stops
// the containers, and then removes the pod.
//
//	the kubelet has finished                     nothing: finalizers of the pod remain
//	node object gone, the collector alive        NodeGone, waiting until two minutes after the
//	                                             grace period, then unknown
//	node object gone, the collector not seen     NodeGone, unknown
//	node object gone, no collector               NodeGone, stuck
//	node not ready, its Lease expired twice, and
//	silent for five minutes                      NodeUnreachable, stuck
//	node not ready, anything else                NodeUnreachable, unknown
//	within the grace period                      GracePeriod, waiting
//	past it, the kubelet reports an error now    KubeletStopping, stuck
//	past it, the kubelet seen alive              KubeletStopping, waiting
//	past it, the kubelet or events not seen      KubeletStopping, unknown
package podend

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// Node is what the node object says.
type Node int

const (
	// NodeUnseen: the node object could not be read.
	NodeUnseen Node = iota
	// NodeAbsent: the node object does not exist.
	NodeAbsent
	// NodeNotReady: the condition Ready is False or Unknown.
	NodeNotReady
	// NodeReady: the condition Ready is True.
	NodeReady
)

// String returns the name of the value.
func (n Node) String() string { return enum.Name(n, "unseen", "absent", "notReady", "ready") }

// State is the observed state of a pod that was deleted.
type State struct {
	// KubeletFinished: the pod has no node, or its kubelet has ended it.
	KubeletFinished bool
	// WithinGrace: the grace period has not ended yet.
	WithinGrace bool
	// JustEnded: the grace period ended less than two minutes ago.
	JustEnded bool
	Node      Node
	// Lease is the Lease of the node, which its kubelet renews.
	Lease blocker.LeaseState
	// SilentLong: the last sign of the kubelet is more than five minutes old: a reboot takes less.
	SilentLong bool
	// ReportsError: the kubelet reports an error now.
	ReportsError bool
	// EventsUnseen: the events of the pod could not be read.
	EventsUnseen bool
	// CollectorAlive: the pod garbage collector was seen alive.
	CollectorAlive bool
	// CollectorUnseen: whether the pod garbage collector lives could not be seen.
	CollectorUnseen bool
}

// Decide returns the reason and the verdict, and false if the kubelet keeps the pod no more.
func Decide(s State) (blocker.Reason, blocker.Verdict, bool) {
	switch {
	case s.KubeletFinished:
		return 0, blocker.None, false
	case s.Node == NodeAbsent:
		return blocker.NodeGone, s.withoutNode(), true
	case s.Node == NodeNotReady:
		silent := s.SilentLong && (s.Lease == blocker.LeaseExpiredTwice || s.Lease == blocker.LeaseAbsent)
		return blocker.NodeUnreachable, stuckUnless(!silent, blocker.Unknown), true
	case s.WithinGrace:
		return blocker.GracePeriod, blocker.Waiting, true
	case s.ReportsError:
		return blocker.KubeletStopping, blocker.Stuck, true
	case s.EventsUnseen: // the kubelet may report an error
		return blocker.KubeletStopping, blocker.Unknown, true
	case s.Lease == blocker.LeaseHeld, s.Node == NodeReady && s.Lease == blocker.LeaseAbsent:
		return blocker.KubeletStopping, blocker.Waiting, true
	}
	return blocker.KubeletStopping, blocker.Unknown, true
}

// withoutNode returns the verdict about a pod whose node object does not exist. The pod garbage
// collector deletes the pod about a minute after the node. The age of the node's deletion is not
// known, so a pod that outlives its grace period is no proof against the collector.
func (s State) withoutNode() blocker.Verdict {
	switch {
	case s.CollectorAlive && (s.WithinGrace || s.JustEnded):
		return blocker.Waiting
	case s.CollectorAlive, s.CollectorUnseen:
		return blocker.Unknown
	}
	return blocker.Stuck
}

// stuckUnless returns the other verdict if the condition holds, else stuck.
func stuckUnless(condition bool, other blocker.Verdict) blocker.Verdict {
	if condition {
		return other
	}
	return blocker.Stuck
}
