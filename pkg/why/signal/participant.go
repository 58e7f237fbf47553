package signal

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// participant returns what keeps the finalizer of a participant. Without an annotation nothing says who the participant
// is; alone: no other participant is left.
func (o *Observation) participant(ctx context.Context, e chain.Explorer, content *unstructured.Unstructured, p alive.Participant,
	alone bool) blocker.Blocker {
	s := ParticipantState{MayAct: alive.CleanUp(o.Object, e.Reader().Now()), Permitted: o.State.permitted()}
	if s.MayAct && p.Namespace == "" {
		return e.Finalizer(ctx, content, p.Finalizer)
	}
	b := blocker.Blocker{Object: cluster.ObjectOf(content), Finalizer: p.Finalizer, Holder: "the participant " + p.Finalizer,
		Since:    blocker.Time(requested(content)),
		Evidence: []blocker.Evidence{evidence(blocker.FromAnnotation, "participant %s", describe(p))}}
	commands := e.Commands()
	b.Next = cluster.Steps("a participant cleans up once the teardown is started, permitted, and not stopped",
		commands.Show("", alive.Resource.GroupResource().String(), alive.Name))
	if s.MayAct {
		var facts []blocker.Evidence
		s.Program, facts = o.program(ctx, e, content, p, alone)
		b.Evidence = append(b.Evidence, facts...)
		b.Holder += " in namespace " + p.Namespace
		b.Next = cluster.Steps("see what the participant does", commands.Kubectl(p.Namespace, "get", "pods", "-o", "wide"),
			commands.Kubectl("", "describe", alive.Resource.GroupResource().String(), alive.Name))
	}
	if b.Reason, b.Verdict = DecideParticipant(s); b.Reason == blocker.ControllerGone {
		loss := p.Text + " stays behind"
		b.Next += "\n" + e.Holders().RemovalStep(content, p.Finalizer, loss)
	}
	return b
}

// program finds out whether the participant runs.
func (o *Observation) program(ctx context.Context, e chain.Explorer, content *unstructured.Unstructured, p alive.Participant,
	alone bool) (Program, []blocker.Evidence) {
	if fact, fails := failureOf(ctx, e, content, p, alone); fails {
		return ProgramFails, []blocker.Evidence{fact}
	}
	namespace := cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), Kind: "Namespace", Name: p.Namespace}
	if _, presence, _ := e.Reader().Live(ctx, namespace); presence == cluster.Absent {
		return ProgramGone, []blocker.Evidence{evidence(blocker.FromField, "there is no namespace %s", p.Namespace)}
	}
	w := workloadsIn(ctx, e.Reader(), p.Namespace)
	return w.program(), []blocker.Evidence{evidence(blocker.FromWorkload, "namespace %s: %s", p.Namespace, w)}
}

// failureOf returns the error that the participant reports now by an event on Alive. An event counts for the participant
// whose finalizer its sender has set, and for the only participant that is left.
func failureOf(ctx context.Context, e chain.Explorer, content *unstructured.Unstructured, p alive.Participant,
	alone bool) (blocker.Evidence, bool) {
	var managers []string
	for _, manager := range families.Attribute(content.GetManagedFields(), p.Finalizer).Managers {
		managers = append(managers, manager.Name)
	}
	runner, _ := families.Find(alive.Finalizer, alive.Kind, alive.Group)
	events, _ := cluster.EventsOf(ctx, e.Reader(), alive.Kind, content)
	for i := range slices.Backward(events) {
		event, sender := &events[i], cluster.Component(&events[i])
		at := cluster.EventTime(*event)
		ours := sender == teardown.LeaseName || sender == runner.Controller.Name
		fresh := !at.Before(requested(content)) && e.Reader().Now().Sub(at) <= holder.FreshError
		if !ours && fresh && (alone || slices.Contains(managers, sender)) {
			return evidence(blocker.FromEvent, "%s of %s, last at %s: %s", event.Reason, sender, blocker.Time(at),
				oneLine(event.Message)), event.Type == corev1.EventTypeWarning
		}
	}
	return blocker.Evidence{}, false
}

// workloads counts what runs in a namespace.
type workloads struct {
	// all were seen.
	seen bool
	// count is the number of workloads, wanted and ready that of their pods; pods is that of all pods that have not ended.
	count, wanted, ready, pods int
}

func workloadsIn(ctx context.Context, reader *cluster.Reader, namespace string) workloads {
	in := cluster.Selection{Namespace: namespace}
	deployments, all := cluster.List(ctx, reader, cluster.Deployments, in)
	stateful, seen := cluster.List(ctx, reader, cluster.StatefulSets, in)
	all = all && seen
	daemons, seen := cluster.List(ctx, reader, cluster.DaemonSets, in)
	all = all && seen
	pods, seen := cluster.List(ctx, reader, cluster.Pods, in)
	w := workloads{seen: all && seen, count: len(deployments) + len(stateful) + len(daemons)}
	for i := range deployments {
		w.add(ptr.Deref(deployments[i].Spec.Replicas, 1), deployments[i].Status.ReadyReplicas)
	}
	for i := range stateful {
		w.add(ptr.Deref(stateful[i].Spec.Replicas, 1), stateful[i].Status.ReadyReplicas)
	}
	for i := range daemons {
		w.add(daemons[i].Status.DesiredNumberScheduled, daemons[i].Status.NumberReady)
	}
	for i := range pods {
		if phase := pods[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			w.pods++
		}
	}
	return w
}

func (w *workloads) add(wanted, ready int32) {
	w.wanted += int(wanted)
	w.ready += int(min(wanted, ready))
}

// program judges the participant by its namespace. A namespace without any workload shows nothing: the participant may run
// outside of the cluster.
func (w workloads) program() Program {
	switch {
	case !w.seen:
		return ProgramUnseen
	case w.wanted > 0 && w.ready == w.wanted:
		return ProgramRuns
	case w.count > 0 && w.wanted == 0 && w.pods == 0:
		return ProgramGone
	}
	return ProgramUnseen
}

// String describes the workloads.
func (w workloads) String() string {
	if !w.seen {
		return "not all workloads could be listed"
	}
	return fmt.Sprintf("%d workloads want %d pods, of which %d are ready; %d pods have not ended", w.count, w.wanted, w.ready, w.pods)
}

// requested returns when the deletion of the object was requested, the zero time if it was not.
func requested(object *unstructured.Unstructured) time.Time {
	if object.GetDeletionTimestamp() == nil {
		return time.Time{}
	}
	return deadline.Of(object).Requested()
}
