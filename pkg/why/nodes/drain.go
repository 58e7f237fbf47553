package nodes

import (
	"context"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// podReasons are the reasons of pods that are still to be evicted, by what the forecast says of them.
var podReasons = map[pod.Reason]blocker.Reason{
	pod.BudgetBlocks: blocker.BudgetFull, pod.BudgetInUse: blocker.BudgetFull, pod.DoNotDisrupt: blocker.DoNotDisrupt,
	pod.EvictionRefused: blocker.EvictionRefused, pod.OrderKeeps: blocker.PodsGoFirst,
}

// podBlockers returns the pods that the node waits for, and those whose objects a finalizer keeps.
func (t *draining) podBlockers(ctx context.Context, e chain.Explorer) []blocker.Blocker {
	var all []blocker.Blocker
	for _, one := range t.report.Pods {
		switch {
		case one.First == forecast.Ending:
			all = append(all, t.ending(ctx, e, one)...)
		case one.First == forecast.Stays && keeps(one, pod.ForeignFinalizer, pod.KubeletStuck):
			for _, found := range t.ending(ctx, e, one) {
				all = append(all, unawaited(found))
			}
		case one.First != forecast.Stays:
			all = append(all, t.running(e, one))
		}
	}
	slices.SortStableFunc(all, func(a, b blocker.Blocker) int { return int(b.Verdict) - int(a.Verdict) })
	return all
}

// keeps reports whether the first blocker of the pod has one of the reasons.
func keeps(one forecast.Pod, reasons ...pod.Reason) bool {
	return len(one.Blockers) > 0 && slices.Contains(reasons, pod.Reason(one.Blockers[0].Reason))
}

// ending explains a pod that is being deleted.
func (t *draining) ending(ctx context.Context, e chain.Explorer, one forecast.Pod) []blocker.Blocker {
	typed := t.pods[one.Namespace+"/"+one.Name]
	if typed == nil {
		return nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil
	}
	object := &unstructured.Unstructured{Object: fields}
	object.SetAPIVersion("v1")
	object.SetKind("Pod")
	return e.Explain(ctx, object)
}

// unawaited returns the blocker of a pod that the node does not wait for: whatever keeps the pod, the node ends.
func unawaited(b blocker.Blocker) blocker.Blocker {
	b.Verdict = min(b.Verdict, blocker.Waiting)
	b.Evidence = append([]blocker.Evidence{{Source: blocker.FromField,
		Text: "the node does not wait for this pod; it waits for the volumes of a pod whose containers have ended"}}, b.Evidence...)
	b.Blockers = slices.Clone(b.Blockers)
	for i := range b.Blockers {
		b.Blockers[i] = unawaited(b.Blockers[i])
	}
	return b
}

// running returns the blocker of a pod that is still to be ended.
func (t *draining) running(e chain.Explorer, one forecast.Pod) blocker.Blocker {
	b := blocker.Blocker{Object: blocker.Object{Kind: "Pod", Namespace: one.Namespace, Name: one.Name, UID: one.UID},
		Reason: blocker.InUse, Since: t.report.Requested}
	for _, found := range one.Blockers {
		if reason, known := podReasons[pod.Reason(found.Reason)]; known && b.Reason == blocker.InUse &&
			(reason != blocker.DoNotDisrupt || one.First != forecast.AtOnce) {
			b.Reason, b.Holder = reason, found.Object
		}
		b.Evidence = append(b.Evidence, blocker.Evidence{Source: blocker.FromField,
			Text: strings.TrimPrefix(found.Object+": "+found.Text, ": ")})
	}
	if left := t.leftOf(one); left != "" {
		b.Reason, b.Holder = blocker.EvictionRefused, left
	}
	if one.Forced != "" {
		b.Evidence = append(b.Evidence, blocker.Evidence{Source: blocker.FromField,
			Text: "the pod is deleted at " + one.Forced + " at the latest, whatever refuses its eviction"})
	}
	b.Verdict = t.verdict(one, b.Reason)
	b.Next = nextOf(e, one, b)
	return b
}

// leftOf returns the refusal of the pod's eviction or deletion as the report has it, "" for none.
func (t *draining) leftOf(one forecast.Pod) string {
	if t.own == nil {
		return ""
	}
	for _, left := range t.own.Left {
		refused := left.Reason == "EvictionRefused" || left.Reason == "DeletionRefused"
		if left.Pod == one.Namespace+"/"+one.Name && refused && left.Holder != "" {
			return left.Holder
		}
	}
	return ""
}

// verdict returns whether the pod goes by itself: at its deadline each does.
func (t *draining) verdict(one forecast.Pod, reason blocker.Reason) blocker.Verdict {
	switch {
	case t.overdue():
		return blocker.Unknown
	case one.Forced != "", reason == blocker.InUse, reason == blocker.PodsGoFirst, one.First == forecast.AtTime:
		return blocker.Waiting
	case one.First == forecast.Never:
		return blocker.Stuck
	}
	return blocker.Unknown
}

// nextOf returns the next step about a pod that is still to be ended.
func nextOf(e chain.Explorer, one forecast.Pod, b blocker.Blocker) string {
	commands := e.Commands()
	show := commands.Kubectl(one.Namespace, "get", "pod", one.Name, "-o", "wide")
	switch b.Reason {
	case blocker.BudgetFull:
		return cluster.Steps("the budget has room once more of its pods are Ready: look why they are not",
			commands.Kubectl(one.Namespace, "get", "poddisruptionbudgets"), commands.Kubectl(one.Namespace, "get", "pods"))
	case blocker.DoNotDisrupt:
		return cluster.Steps("look whether the pod may go: its annotation says no", show) + "\n" +
			cluster.LastResort("the pod is evicted, and the work that it must not interrupt is lost",
				commands.Kubectl(one.Namespace, "annotate", "pod", one.Name, pod.DoNotDisruptAnnotation+"-"))
	case blocker.EvictionRefused:
		return cluster.Steps("find out what refuses the eviction: two budgets that select the pod, or a webhook",
			commands.Kubectl(one.Namespace, "get", "poddisruptionbudgets"), commands.Kubectl(one.Namespace, "describe", "pod",
				one.Name))
	default:
		return cluster.Steps("wait: nothing but the drain itself keeps the pod", show)
	}
}

// diskBlockers returns the attachments that no pod above accounts for.
func (t *draining) diskBlockers(ctx context.Context, e chain.Explorer) []blocker.Blocker {
	var all []blocker.Blocker
	for _, d := range t.report.Disks {
		if !d.Awaited || slices.ContainsFunc(d.Pods, t.waitsFor) {
			continue
		}
		object, _, _ := e.Reader().Live(ctx, cluster.Ref{Kind: "VolumeAttachment", Name: d.Attachment,
			Resource: attachments})
		if object != nil && object.GetDeletionTimestamp() != nil {
			all = append(all, e.Explain(ctx, object)...)
			continue
		}
		all = append(all, blocker.Blocker{
			Object: blocker.Object{Kind: "VolumeAttachment", Group: attachments.Group, Name: d.Attachment},
			Reason: blocker.VolumeAttached, Verdict: blocker.Waiting, Since: t.report.Requested,
			Holder:   "the attach/detach controller of kube-controller-manager",
			Evidence: []blocker.Evidence{{Source: blocker.FromField, Text: "volume " + d.Volume + ": " + d.Text}},
			Next: cluster.Steps("the volume is detached once the kubelet has unmounted it",
				e.Commands().Kubectl("", "describe", "volumeattachment", d.Attachment)),
		})
	}
	return all
}

// waitsFor reports whether the node waits for the pod, by its namespace/name.
func (t *draining) waitsFor(name string) bool {
	return slices.ContainsFunc(t.report.Pods, func(one forecast.Pod) bool {
		return one.Namespace+"/"+one.Name == name && one.First != forecast.Stays
	})
}

// attachments is the resource of VolumeAttachments.
var attachments = storagev1.SchemeGroupVersion.WithResource("volumeattachments")
