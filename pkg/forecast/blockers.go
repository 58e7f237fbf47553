package forecast

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// left says why a pod stays, by the reason of its decision.
var left = map[pod.Reason]string{
	pod.StaticPod: "a static pod: only the kubelet ends it, and its object goes with the node",
	pod.WouldReturn: "tolerates the taint " + termination.DisruptedTaint +
		" and would return: it runs until the machine ends",
	pod.ContainersFinished: "its containers ended for good: its object goes with the node",
	pod.KubeletStuck:       "the kubelet should have ended it a while ago: the node does not wait for it",
	pod.ForeignFinalizer:   "its containers ended: the node does not wait for its object",
}

// blockers returns what keeps the pod, and what keeps its object when its containers have ended.
func (o *outlook) blockers() []Blocker {
	found := []Blocker{}
	add := func(reason pod.Reason, format string, values ...any) {
		found = append(found, Blocker{Reason: string(reason), Text: fmt.Sprintf(format, values...)})
	}
	if text := left[o.decision.Reason]; text != "" {
		add(o.decision.Reason, "%s", text)
	} else if o.state.End == pod.Running {
		found = append(found, o.keepers()...)
	}
	if o.decision.Reason == pod.TerminatingBeyond {
		add(pod.TerminatingBeyond, "is being deleted, and its grace period ends after that of the node")
	}
	if len(o.pod.Finalizers) > 0 {
		add(pod.ForeignFinalizer, "keeps its object after its containers ended: %s", strings.Join(o.pod.Finalizers, ", "))
	}
	return found
}

// keepers returns what keeps a running pod from being evicted.
func (o *outlook) keepers() []Blocker {
	var found []Blocker
	if o.ending {
		return append(found, Blocker{Reason: string(pod.NamespaceEnds), Object: "Namespace " + o.pod.Namespace,
			Text: "is being deleted, which deletes the pod"})
	}
	if o.budgets.answer == pod.Refused {
		found = append(found, o.budgets.block(pod.EvictionRefused))
	} else if o.budgets.answer == pod.Blocked {
		found = append(found, o.budgets.block(pod.BudgetBlocks))
	} else if o.budgets.next {
		found = append(found, o.budgets.block(pod.BudgetInUse))
	}
	if text := o.annotation(); text != "" {
		found = append(found, Blocker{Reason: string(pod.DoNotDisrupt), Text: text})
	}
	switch {
	case o.decision.Action != pod.Wait: // from L on the order does not count
	case o.state.Kind == pod.Critical && o.tiers.Ordinary:
		found = append(found, Blocker{Reason: string(pod.OrderKeeps), Text: "ordinary pods go first"})
	case o.state.Kind == pod.Daemon && (o.tiers.Ordinary || o.tiers.Critical || o.tiers.Volumes):
		found = append(found, Blocker{Reason: string(pod.OrderKeeps), Text: "all other pods and their volumes go first"})
	}
	if o.returns() {
		found = append(found, Blocker{Reason: string(pod.WouldReturn), Text: "tolerates the taint " +
			termination.DisruptedTaint + ": a replacement that comes to this node is left there"})
	}
	return found
}

// annotation says what the annotation do-not-disrupt does, "" if it does nothing.
func (o *outlook) annotation() string {
	text := pod.DoNotDisruptAnnotation + ": " + o.pod.Annotations[pod.DoNotDisruptAnnotation]
	switch until, says := pod.DisruptableFrom(o.pod); {
	case says == pod.Unreadable:
		return text + " is neither true nor a duration, and is ignored"
	case says == pod.Protected && until.IsZero():
		return text
	case says == pod.Protected && until.After(o.view.Now):
		return text + ", until " + rfc3339(until)
	}
	return ""
}

// returns reports whether a replacement of the pod could come to the node.
func (o *outlook) returns() bool {
	if metav1.GetControllerOf(o.pod) == nil || o.state.Kind == pod.Daemon {
		return false
	}
	young := o.pod.DeepCopy()
	young.CreationTimestamp = metav1.NewTime(o.view.Tainted.Add(time.Second))
	return o.view.Returns(young)
}

// losses returns what of the pod does not come back. Static pods and those of DaemonSets belong to the node.
func (w *World) losses(o *outlook) []Loss {
	found := []Loss{}
	if o.state.Kind == pod.Mirror || o.state.Kind == pod.Daemon || o.state.End == pod.Finished {
		return found
	}
	switch {
	case metav1.GetControllerOf(o.pod) == nil:
		found = append(found, Loss{"noOwner", "no controller owns the pod: nothing creates it again"})
	case w.Frozen[o.pod.Namespace] && usesClaim(o.pod):
		found = append(found, Loss{"frozen", "the freeze of a teardown refuses pods that use claims: the pod does not return"})
	}
	var empty, local []string
	for i := range o.pod.Spec.Volumes {
		volume := &o.pod.Spec.Volumes[i]
		if volume.EmptyDir != nil {
			empty = append(empty, volume.Name)
		}
		if pv := w.Volumes[w.volumeOf(o.pod, volume)]; pv != nil && isLocal(pv) {
			local = append(local, pv.Name)
		}
	}
	if len(empty) > 0 {
		found = append(found, Loss{"emptyDir", "what is in emptyDir " + strings.Join(empty, ", ") + " is lost"})
	}
	if len(local) > 0 {
		found = append(found, Loss{"localVolume", "PersistentVolume " + strings.Join(local, ", ") +
			" is on this machine: the pod cannot start elsewhere"})
	}
	return found
}

// isLocal reports whether the data of the volume is on one machine.
func isLocal(pv *v1.PersistentVolume) bool {
	if pv.Spec.Local != nil || pv.Spec.HostPath != nil {
		return true
	}
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return false
	}
	return slices.ContainsFunc(pv.Spec.NodeAffinity.Required.NodeSelectorTerms, func(term v1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, func(r v1.NodeSelectorRequirement) bool {
			return r.Key == v1.LabelHostname
		})
	})
}

// volumeOf returns the name of the PersistentVolume of a volume of the pod, "" if it has none.
func (w *World) volumeOf(p *v1.Pod, volume *v1.Volume) string {
	name := claimName(p, volume)
	if claim := w.Claims[p.Namespace+"/"+name]; name != "" && claim != nil {
		return claim.Spec.VolumeName
	}
	return ""
}

func usesClaim(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(volume v1.Volume) bool { return claimName(p, &volume) != "" })
}

// claimName returns the name of the PersistentVolumeClaim of a volume of the pod, "" if it has none.
func claimName(p *v1.Pod, volume *v1.Volume) string {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral != nil:
		return p.Name + "-" + volume.Name
	}
	return ""
}
