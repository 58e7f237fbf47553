package drain

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

const (
	// disrupted is Karpenter's reason of the event about a pod that the deadline ends.
	disrupted = "Disrupted"
	// doNotDisruptInvalid is the reason of the event about an annotation that is ignored.
	doNotDisruptInvalid = "DoNotDisruptInvalid"
)

// tellDisrupted sends an event to the pod: who ended it, when, and how much of its grace period it gets.
func (n *Node) tellDisrupted(r *tracked, entry termination.CutShort) {
	because := ""
	switch pod.Reason(entry.Reason) {
	case pod.BudgetBlocks:
		because = strings.TrimRight(", although no room is left in the budget "+entry.Budget, " ")
	case pod.EvictionRefused:
		because = ", although its eviction was refused: " + r.evictionText
	case pod.DoNotDisrupt:
		because = ", in spite of the annotation " + pod.DoNotDisruptAnnotation
	case pod.NamespaceEnds:
		because = ", because its namespace did not end"
	case pod.RequestsPause:
		because = ", because the API server took no evictions"
	default:
	}
	n.drainer.config.Recorder.Eventf(r.pod, v1.EventTypeWarning, disrupted,
		"node-terminator ends the pod for the termination of node %s, which%s: it gets %d s of its grace period of %d s%s",
		n.name, endOf(n.view), entry.Given, entry.Given+entry.Missing, because)
}

// tellRefusal sends an event that the deletion of the pod is refused.
func (n *Node) tellRefusal(r *tracked) {
	n.drainer.config.Recorder.Eventf(r.pod, v1.EventTypeWarning, DeletionRefused,
		"The deletion of the pod for the termination of node %s is refused, and is tried again: %s", n.name, r.refusal)
}

// tellIgnored sends one event that an annotation of the pod has no effect.
func (n *Node) tellIgnored(r *tracked) {
	if _, said := pod.DisruptableFrom(r.pod); r.told || said != pod.Unreadable {
		return
	}
	r.told = true
	n.drainer.config.Recorder.Eventf(r.pod, v1.EventTypeWarning, doNotDisruptInvalid,
		`The annotation %s is ignored: its value %q is neither "true", "false" nor a duration`,
		pod.DoNotDisruptAnnotation, r.pod.Annotations[pod.DoNotDisruptAnnotation])
}
