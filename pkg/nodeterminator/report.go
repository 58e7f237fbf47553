package nodeterminator

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// phases are how far a termination has come, by its reason; all others are Draining.
var phases = map[node.Reason]termination.Phase{
	node.AwaitingVolumeDetachment: termination.PhaseDetaching,
	node.DeadlineReached:          termination.PhaseStopping,
	node.InstanceStops:            termination.PhaseStopping,
	node.AwaitingPowerOff:         termination.PhaseStopping,
	node.InstanceForeign:          termination.PhaseStopping,
	node.InstanceShared:           termination.PhaseStopping,
	node.InstanceUnknown:          termination.PhaseStopping,
	node.InstanceUnreadable:       termination.PhaseStopping,
	node.InstanceCameBack:         termination.PhaseStopping,
	node.DisksAttached:            termination.PhaseStopping,
	node.ProofIncomplete:          termination.PhaseStopping,
	node.MachineOff:               termination.PhaseCleaning,
	node.DetachNotStarted:         termination.PhaseCleaning,
}

// update brings the report of the termination up to date.
func (t *nodeTermination) update(n *v1.Node, o *observation, d node.Decision) {
	r := &t.report
	r.Node, r.UID, r.ProviderID = n.Name, string(n.UID), n.Spec.ProviderID
	r.Requested, r.Deadline = o.deadline.Requested, nil
	if !o.deadline.None() {
		end := o.deadline.End
		r.Deadline = &end
	}
	r.Phase, r.Reason = termination.PhaseDraining, string(d.Reason)+because(o.evidence.failure())
	if phase, known := phases[d.Reason]; known {
		r.Phase = phase
	}
	if o.state.Proof == node.Given && d.Reason == node.AwaitingVolumeDetachment {
		r.Phase = termination.PhaseCleaning
	}
	t.count(o.pods)
	r.Volumes = o.attached.report(o.stranded)
	if overdue := o.now.Sub(o.times.Stop); o.state.Ended && o.state.Proof != node.Given {
		r.OverdueSeconds = int64(overdue / time.Second)
	}
}

// count takes over what became of the pods, once all are known.
func (t *nodeTermination) count(pods drain.Result) {
	if pods.Synced {
		t.report.Counts, t.report.CutShort, t.report.Left = pods.Counts, pods.CutShort, pods.Left
	}
}

// note records a step that was refused.
func (t *nodeTermination) note(d node.Decision, err error) {
	t.report.Reason = string(d.Reason) + ": " + err.Error()
}
