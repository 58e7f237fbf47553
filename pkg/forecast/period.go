package forecast

import (
	"fmt"
	"time"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

// plan is when the termination of the node ends.
type plan struct {
	period   deadline.Period
	from     string
	deadline deadline.Deadline
	times    deadline.Times
	tainted  time.Time
	notes    []string
}

func (p *plan) note(format string, values ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, values...))
}

// planOf returns the deadline of the node as its deletion has it, or as a deletion now would.
func (w *World) planOf() (plan, error) {
	p := plan{}
	if err := w.choosePeriod(&p); err != nil {
		return plan{}, err
	}
	p.deadline = deadline.Of(w.Now, p.period)
	if requested := w.requested(); !requested.IsZero() {
		p.deadline = deadline.Of(requested, p.period)
	}
	p.deadline = deadline.Tighten(p.deadline, w.Node.Annotations[termination.TimestampAnnotation])
	if w.Claim != nil {
		p.deadline = deadline.Tighten(p.deadline, w.Claim.Annotation)
	}
	p.tainted = w.Now
	if at := termination.FirstAction(w.Node, w.Now); !at.IsZero() && w.terminating() {
		p.tainted = at
	}
	p.times = p.deadline.Times(p.tainted, len(w.Attachments) > 0)
	w.describe(&p)
	return p, nil
}

func (w *World) terminating() bool { return !w.requested().IsZero() }

// requested returns when the Node or its claim was deleted, whichever was first.
func (w *World) requested() time.Time {
	requested := termination.Requested(w.Node)
	if w.Claim != nil && !w.Claim.Requested.IsZero() && (requested.IsZero() || w.Claim.Requested.Before(requested)) {
		return w.Claim.Requested
	}
	return requested
}

// choosePeriod takes the period of --grace-period, of the claim, or of the label. The claim's replaces the label's.
func (w *World) choosePeriod(p *plan) error {
	labeled, served, invalid := termination.PeriodOf(w.Node)
	if invalid != nil {
		p.note("%s: node-terminator does not serve this node", invalid)
	}
	switch {
	case w.Period != "" && w.terminating():
		return fmt.Errorf("node %s is being deleted already: its period is fixed, leave out --grace-period", w.Node.Name)
	case w.Period != "":
		period, err := deadline.ParsePeriod(w.Period)
		if err != nil {
			return fmt.Errorf("--grace-period: %w", err)
		}
		p.period, p.from = period, "--grace-period"
	case w.Claim != nil && w.Claim.Period == "":
		p.from = "NodeClaim " + w.Claim.Name + ", which names no terminationGracePeriod"
	case w.Claim != nil:
		period, err := deadline.ParsePeriod(w.Claim.Period)
		if err != nil {
			p.note("spec.terminationGracePeriod of NodeClaim %s: %s", w.Claim.Name, err)
		}
		p.period, p.from = period, "NodeClaim "+w.Claim.Name
	case served:
		p.period, p.from = labeled, "label "+termination.Label
	}
	if !served && invalid == nil && (w.Claim == nil || w.Claim.Ours) {
		p.note("The node lacks the label %s: if it is deleted as it is, nothing drains it, and its pods are ended about a "+
			"minute later. What follows is for a node with the label", termination.Label)
	}
	return nil
}

// describe adds what a user must know of the deadline.
func (w *World) describe(p *plan) {
	switch {
	case w.Claim != nil && !w.Claim.Ours && !p.deadline.None():
		p.note("Karpenter ends this node. It deletes a pod at the deadline less its grace period, so that no time is left to "+
			"unmount; the times here leave %s for that", p.deadline.End.Sub(p.times.GraceEnds))
	case p.times.Late:
		p.note("No time is left for grace periods: each pod gets 1 s, and the machine is stopped %s after the first step",
			deadline.LateStop)
	}
	if p.deadline.None() {
		p.note("There is no deadline: pods that cannot be evicted are awaited without end, and nothing is cut short")
	}
	w.describeClaim(p)
	if w.Silent {
		p.note("The kubelet is silent: nobody ends the containers, and pods stay until the machine is proven to be off")
	}
}

// describeClaim says when a claim of ours has its node deleted.
func (w *World) describeClaim(p *plan) {
	if w.Claim == nil || !w.Claim.Ours || w.terminating() {
		return
	}
	unless := ""
	if p.deadline.None() {
		unless = ", once no pod of it is kept from being evicted"
	}
	switch {
	case w.Claim.Drifted:
		p.note("NodeClaim %s has drifted: node-terminator deletes the node%s", w.Claim.Name, unless)
	case w.Claim.Expires.IsZero():
	case w.Now.Before(w.Claim.Expires):
		p.note("NodeClaim %s expires at %s: then node-terminator deletes the node%s", w.Claim.Name,
			rfc3339(w.Claim.Expires), unless)
	default:
		p.note("NodeClaim %s has expired: node-terminator deletes the node%s", w.Claim.Name, unless)
	}
}
