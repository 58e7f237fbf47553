package api

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/families"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// The loops of kube-controller-manager that end deletions.
var (
	namespaceController = loop("namespace controller", "namespace-controller", "namespace")
	garbageCollector    = loop("garbage collector", "garbage-collector-controller", "garbagecollector")
)

// loop returns a loop of kube-controller-manager.
func loop(name string, names ...string) families.Controller {
	return families.Controller{
		Name:   name + " of kube-controller-manager",
		Images: []string{"kube-controller-manager"}, Commands: []string{"kube-controller-manager"},
		Labels: map[string]string{"component": "kube-controller-manager"},
		Leases: []string{"kube-controller-manager"}, Namespaces: []string{"kube-system"},
		ControlPlane: true, Loops: names,
	}
}

// judged is a controller and what was concluded about it.
type judged struct {
	holder.Finding
	reason  blocker.Reason
	verdict blocker.Verdict
}

// judge finds the controller and says whether it acts.
func judge(ctx context.Context, e chain.Explorer, controller families.Controller) judged {
	finding := e.Holders().Look(ctx, controller, "")
	reason, verdict := blocker.JudgeController(finding.State)
	return judged{finding, reason, verdict}
}

// isGone reports whether the controller is proven gone.
func (j judged) isGone() bool { return j.reason == blocker.ControllerGone }

// blocker returns the blocker of an object that waits for the controller.
func (j judged) blocker(e chain.Explorer, object *unstructured.Unstructured, finalizer string) blocker.Blocker {
	next := j.Next
	if next == "" {
		next = cluster.Steps("start "+j.Holder, get(e.Commands(), object.GetNamespace(), resourceWord(e, object), object.GetName(), "-o", "yaml"))
	}
	since := j.Since
	if since == "" {
		since = askedAt(object)
	}
	return blocker.Blocker{
		Object: cluster.ObjectOf(object), Finalizer: finalizer, Reason: j.reason, Verdict: j.verdict,
		Holder: j.Holder, Since: since, Evidence: j.Evidence, Next: next,
	}
}

// verdictFor returns the verdict of a step that the controller has not taken yet.
func (j judged) verdictFor() blocker.Verdict {
	if j.verdict == blocker.Waiting {
		return blocker.Waiting
	}
	return blocker.Unknown // ControllerGone has a blocker of its own
}
