package api

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// collector is the garbage collector that removes a finalizer.
type collector struct {
	controller
	// own: garbage-collector of Exeunt was seen alive. It releases cycles, and waits for kinds
	// that cannot be listed.
	own bool
	// events are what it told about the owner.
	events []blocker.Evidence
}

// judgeCollector finds the garbage collector, and adds what it told about the owner.
func judgeCollector(ctx context.Context, e chain.Explorer, owner *unstructured.Unstructured,
	finalizer string) collector {
	c := collector{controller: judge(ctx, e, owner, finalizer)}
	gvk := owner.GroupVersionKind()
	family, _ := families.Find(finalizer, gvk.Kind, gvk.Group)
	for _, alternative := range family.Alternatives {
		finding := e.Holders().Look(ctx, alternative, "")
		if reason, _ := blocker.JudgeController(finding.State); reason == blocker.ControllerActs {
			c.own = true
			c.addEvidence(finding.Evidence)
		}
	}
	c.events = toldBy(ctx, e, owner)
	c.addEvidence(c.events)
	return c
}

// told returns what the events of garbage-collector say, and the rule if it is alive.
func (c collector) told(rule string) []blocker.Evidence {
	told := slices.Clone(c.events)
	if c.own && rule != "" {
		told = append(told, evidence(blocker.FromWorkload, "%s", rule))
	}
	return told
}

// addEvidence adds the evidence that is not there yet.
func (c *collector) addEvidence(more []blocker.Evidence) {
	c.Evidence = slices.Clone(c.Evidence)
	for _, fact := range more {
		if !slices.Contains(c.Evidence, fact) {
			c.Evidence = append(c.Evidence, fact)
		}
	}
}

// toldBy returns the latest event of each kind that garbage-collector sent about the owner.
func toldBy(ctx context.Context, e chain.Explorer, owner *unstructured.Unstructured) []blocker.Evidence {
	events, _ := cluster.EventsOf(ctx, e.Reader(), owner.GetKind(), owner)
	var told []blocker.Evidence
	for _, reason := range []string{blocker.EventName, blocker.UnreadEvent, blocker.CycleEvent} {
		latest := -1
		for i := range events {
			if events[i].Reason == reason && isOfCollector(&events[i]) {
				latest = i
			}
		}
		if latest >= 0 {
			told = append(told, evidence(blocker.FromEvent, "%s of %s, last at %s: %s", reason, blocker.GarbageEventSource,
				blocker.Time(cluster.EventTime(events[latest])), events[latest].Message))
		}
	}
	return told
}

func isOfCollector(event *corev1.Event) bool {
	return event.Source.Component == blocker.GarbageEventSource || event.ReportingController == blocker.GarbageEventSource
}

// releasesCycles says what garbage-collector does about owners that wait for each other.
const releasesCycles = "garbage-collector releases owners that wait for each other once no dependent outside of the cycle blocks one of them"

// waitsForKinds says what garbage-collector does about kinds that cannot be listed.
const (
	waitsForKinds       = "garbage-collector waits for such kinds for --unreadable-kind-timeout, 10 s by default, and releases the owner then"
	waitsForKindsOrphan = "garbage-collector waits with the policy Orphan until such kinds can be listed, or for --unreadable-kind-orphan-timeout, which is off by default"
)
