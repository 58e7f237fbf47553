package holder

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// Judge returns the blocker of a finalizer that the family's controllers remove from the
// object. driver is the name of the CSI driver of the object, or "".
func (f Finder) Judge(ctx context.Context, object *unstructured.Unstructured, finalizer string, family families.Family,
	driver string) blocker.Blocker {
	finding := f.LookAll(ctx, family.Controllers(), driver)
	if isTraceless(finding.State) && !finding.State.Uninstalled && !family.Controller.ControlPlane &&
		family.Controller.RunsIn == "" && len(family.Alternatives) == 0 {
		finding = f.withGoneWebhook(ctx, finding, object, finalizer)
	}
	found, seen := f.failure(ctx, object, family.Controllers(), driver)
	if found != nil {
		finding = f.withFailure(finding, object, *found)
	}
	reason, verdict := blocker.JudgeController(finding.State)
	if doubtful := !seen || found != nil; verdict == blocker.Waiting && doubtful { // it may report an error
		verdict = blocker.Unknown
	}
	if reason == blocker.ControllerGone && !finding.StandsBy { // else it acts once its Lease is deleted
		finding.Next = strings.TrimSuffix(finding.Next+"\n"+f.RemovalStep(object, finalizer, family.Force), "\n")
	}
	finding.Since = max(finding.Since,
		blocker.Time(deadline.Of(object).Requested())) // nothing blocks a deletion before it was asked for
	return blocker.Blocker{
		Object: cluster.ObjectOf(object), Finalizer: finalizer, Reason: reason, Verdict: verdict,
		Holder: finding.Holder, Since: finding.Since, Evidence: finding.Evidence, Next: finding.Next,
	}
}

// LookAll finds controllers of which any one may act. They live if one lives, and are gone
// only if all are gone.
func (f Finder) LookAll(ctx context.Context, controllers []families.Controller, driver string) Finding {
	findings := make([]Finding, len(controllers))
	var containers []Container
	for i, controller := range controllers {
		findings[i] = f.Look(ctx, controller, driver)
		containers = append(containers, findings[i].Containers...)
	}
	doubtInvisible(findings)
	all := joined(findings)
	all.Containers = containers // also of one that stands by
	return all
}

// doubtInvisible changes findings about controllers without a visible workload while another one stands by: in the
// switch to that one, their leader may have its loops off.
func doubtInvisible(findings []Finding) {
	i := slices.IndexFunc(findings, func(f Finding) bool { return f.StandsBy })
	if i < 0 {
		return
	}
	for j := range findings {
		f := &findings[j]
		invisible := f.State.Workload == blocker.WorkloadAbsent || f.State.Workload == blocker.WorkloadUnseen
		if _, verdict := blocker.JudgeController(f.State); f.StandsBy || !invisible || verdict == blocker.Stuck {
			continue
		}
		f.Next = findings[i].Next
		if f.State.Lease == blocker.LeaseHeld {
			f.State.Lease = blocker.LeaseUnseen
		}
	}
}

// withFailure adds the error that the controller reports to its observed state.
func (f Finder) withFailure(finding Finding, object *unstructured.Unstructured, found failure) Finding {
	finding.State.ReportsError = !found.stale
	finding.Evidence = append(slices.Clone(finding.Evidence), found.evidence)
	if reason, _ := blocker.JudgeController(finding.State); reason != blocker.ControllerFails {
		return finding
	}
	finding.Since = blocker.Time(found.since)
	repair := cluster.Steps("resolve the error that "+strings.TrimSuffix(finding.Holder, unseen)+" reports: "+
		found.evidence.Text,
		f.Commands.Kubectl(object.GetNamespace(), "describe", f.ResourceOf(object), object.GetName()))
	finding.Next = repair + "\n" + finding.Next
	return finding
}

// joined returns one finding for the controllers of a family, the first of which is the
// usual one. An alternative without any trace was never installed: it counts neither as alive
// nor as unseen.
func joined(findings []Finding) Finding {
	var open, failing, gone []Finding
	for i, finding := range findings {
		reason, verdict := blocker.JudgeController(finding.State)
		switch {
		case reason == blocker.ControllerActs:
			return finding
		case reason == blocker.ControllerGone && finding.StandsBy: // the nearest to act
			gone = slices.Insert(gone, 0, finding)
		case reason == blocker.ControllerGone:
			gone = append(gone, finding)
		case verdict == blocker.Stuck:
			failing = append(failing, finding)
		case i == 0 || !isTraceless(finding.State):
			open = append(open, finding)
		}
	}
	all := slices.Concat(open, failing, gone)
	first := all[0]
	for _, other := range all[1:] {
		first.Evidence = append(slices.Clone(first.Evidence), other.Evidence...)
		first.StandsBy = first.StandsBy || other.StandsBy
	}
	return first
}

// isTraceless reports whether the lists of workloads, pods and Leases have nothing of the
// controller.
func isTraceless(s blocker.ControllerState) bool {
	return s.Workload == blocker.WorkloadAbsent && s.Lease == blocker.LeaseAbsent
}
