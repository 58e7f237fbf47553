package nodes

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
)

// rows run in parallel in one cloud. Each has machines of its own.
func rows(t *testing.T, e *ending, tests map[string]func(*testing.T, *ending)) {
	t.Helper()
	t.Run("rows", func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, e.of(t))
			})
		}
	})
}

func TestRowsWithoutProvider(t *testing.T) {
	rows(t, startEnding(t, 14, "--instances=none"), map[string]func(*testing.T, *ending){
		"#01 first action and end":          firstAction,
		"#03 no deadline":                   neverForced,
		"#05 invalid label":                 invalidLabel,
		"#07 label removed before deletion": labelRemoved,
		"#55 handed over at E":              handedOver,
		"#55 the kubelet is silent":         silentKubelet,
		"#06 a claim is deleted":            claimDeleted,
		"#06 a claim goes with its node":    claimGoesWithNode,
		"#06 a claim without the label":     claimWithoutLabel,
		"#60 a claim of Karpenter":          karpentersClaim,
		"#61 a node of the control plane":   controlPlaneNode,
	})
}

func firstAction(t *testing.T, e *ending) {
	name := e.take("15m")
	pod := e.pod(name, "web", annotated("cloudmock.exeunt.io/exit-after", "4s"))
	deleted := e.delete(name)
	var first *v1.Node
	e.Until("the first action is written", func() bool {
		first = e.node(name)
		return first == nil || !termination.FirstAction(first, time.Time{}).IsZero()
	})
	if first == nil {
		t.Fatal("the node is gone before its first action")
	}
	if took := time.Since(deleted); took > 3*time.Second {
		t.Errorf("the first action took %v", took)
	}
	want := first.DeletionTimestamp.Add(15 * time.Minute).UTC().Format(time.RFC3339)
	if got := first.Annotations[termination.TimestampAnnotation]; got != want {
		t.Errorf("the deadline is %s, want %s", got, want)
	}
	if first.Annotations[termination.ScaleDownDisabled] != "true" {
		t.Errorf("annotations %v", first.Annotations)
	}
	if _, excluded := first.Labels[v1.LabelNodeExcludeBalancers]; !excluded {
		t.Errorf("labels %v", first.Labels)
	}
	message := e.awaitNodeEvent(name, "TerminationGracePeriodExpiring")
	if !strings.HasSuffix(message, "will be forcibly terminated at "+want) {
		t.Errorf("event %q", message)
	}
	e.awaitGone(name)
	if e.getPod(pod.Name) != nil && e.getPod(pod.Name).UID == pod.UID {
		t.Error("the node is gone before its pod")
	}
	report := e.awaitPhase(first.UID, termination.PhaseEnded)
	if report.Counts.Evicted < 1 || report.Counts.CutShort != 0 {
		t.Errorf("report %+v", report)
	}
}

func invalidLabel(t *testing.T, e *ending) {
	name := e.take("15m")
	e.label(name, "1d")
	e.Until("the finalizer is removed", func() bool { return !termination.Protected(e.node(name)) })
	if message := e.awaitNodeEvent(name, "DeadlineInvalid"); !strings.Contains(message, `"1d"`) {
		t.Errorf("event %q", message)
	}
	e.delete(name)
	if e.node(name) != nil {
		t.Error("the node is not gone at once")
	}
}

func labelRemoved(t *testing.T, e *ending) {
	name := e.take("15m")
	before := e.node(name)
	e.label(name, "")
	e.Until("the finalizer is removed", func() bool { return !termination.Protected(e.node(name)) })
	if now := e.node(name); len(now.Annotations) != len(before.Annotations) || len(now.Spec.Taints) != 0 {
		t.Errorf("annotations %v, taints %v", now.Annotations, now.Spec.Taints)
	}
}

func handedOver(t *testing.T, e *ending) {
	name := e.take("8s")
	pod := e.pod(name, "stuck", stuck, grace(3600))
	uid := e.node(name).UID
	e.fault(machines.Fault{Node: name, Kind: machines.Partition})
	deleted := e.delete(name)
	e.awaitGone(name)
	if took := time.Since(deleted); took < 5*time.Second || took > 11*time.Second {
		t.Errorf("the node is gone after %v, want 8 s", took)
	}
	if now := e.getPod(pod.Name); now == nil || now.UID != pod.UID {
		t.Error("the pod was removed before the node")
	}
	e.awaitPhase(uid, termination.PhaseEnded)
}

func silentKubelet(t *testing.T, e *ending) {
	name := e.take("15m")
	pod := e.pod(name, "stuck", stuck)
	e.fault(machines.Fault{Node: name, Kind: machines.KubeletDead})
	e.Until("the node is not ready", func() bool { return !e.IsReady(name) })
	deleted := e.delete(name)
	e.awaitGone(name)
	if took := time.Since(deleted); took > 5*time.Second {
		t.Errorf("the node was handed over after %v", took)
	}
	if now := e.getPod(pod.Name); now == nil || now.UID != pod.UID {
		t.Error("the pod was removed before the node")
	}
}
