package gracestorage

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/window"
	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// deletions counts requests by outcome.
var deletions = metrics.NewCounterVec(&metrics.CounterOpts{
	Name:           "apiserver_crd_graceful_deletion_total",
	Help:           "Number of DELETE requests with a grace period for custom resources with finalizers, by group, resource and outcome: granted, shortened, forced, or refused if the grace period is not in force.",
	StabilityLevel: metrics.ALPHA,
}, []string{"group", "resource", "outcome"})

// RegisterMetrics registers the metrics of this package, once in a process.
var RegisterMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(deletions) })

// outcome is the label of a decision about a request that names a grace period.
func outcome(decision graceful.Decision) string {
	switch decision.Reason {
	case graceful.Granted:
		return "granted"
	case graceful.Shortened:
		return "shortened"
	case graceful.ForceRequested:
		return "forced"
	default:
		return "refused"
	}
}

// report warns the client and counts, once the write is committed.
func (w *write) report(ctx context.Context) {
	if !w.state.Request.NamesGrace() {
		return
	}
	count(w.resource, w.decision)
	if text := warningFor(w.decision, w.before); text != "" {
		warning.AddWarning(ctx, "", text)
	}
	if seconds := w.holder.grace(); *seconds > deadline.MaxSeconds && w.decision.Action == graceful.SetDeadline {
		warning.AddWarning(ctx, "", fmt.Sprintf("the grace period is limited to %d seconds", deadline.MaxSeconds))
	}
}

func count(resource schema.GroupResource, decision graceful.Decision) {
	deletions.WithLabelValues(resource.Group, resource.Resource, outcome(decision)).Inc()
}

// reportRemoval warns a client whose grace period had no effect, because the object had no finalizer.
func reportRemoval(ctx context.Context, removed deletion) {
	seconds := holderFrom(ctx).grace()
	if seconds == nil {
		return
	}
	request := graceful.Earlier
	if *seconds == 0 {
		request = graceful.Zero
	}
	decision := graceful.Decide(graceful.State{Existing: removed.kind, Request: request, Finalizers: graceful.NoneLeft})
	if text := warningFor(decision, removed); text != "" {
		warning.AddWarning(ctx, "", text)
	}
}

// warningFor returns the sentence for a client whose grace period is not in force, or "".
func warningFor(decision graceful.Decision, before deletion) string {
	switch decision.Reason {
	case graceful.NeverLater:
		return fmt.Sprintf("the deadline of the object stays %s: a deadline can only move earlier", window.Format(before.end))
	case graceful.OnlyForceShortens:
		return "the grace period is ignored: the object is already being deleted without one, which only a forced deletion (gracePeriodSeconds 0) changes"
	case graceful.NeedsFinalizer:
		return "the grace period is ignored: the object had no finalizer, so no controller waits for its deadline"
	case graceful.NoRoom:
		return "the grace period is ignored: the annotations of the object have no room for " + deadline.Annotation
	default:
		return ""
	}
}
