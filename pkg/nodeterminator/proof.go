package nodeterminator

import (
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/lease"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/machine"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// evidence is what is known of a machine at one moment.
type evidence struct {
	lease   lease.View
	machine machine.View
	// ours, others: the node has the taint out-of-service, set by us or by an administrator.
	ours, others bool
	// shared: another node has the same providerID, so the answers may be about the machine of that node.
	shared bool
}

// byHand reports whether an administrator says that the machine is off, and no provider that it runs.
func (e evidence) byHand() bool { return e.others && e.machine.State != instances.Running }

// off reports whether somebody says that the machine is off.
func (e evidence) off() bool { return e.byHand() || e.machine.Off > 0 && !e.shared }

// confirmed reports whether this was said twice, or by an administrator.
func (e evidence) confirmed() bool { return e.byHand() || e.machine.Off > 1 && !e.shared }

// silent reports whether the kubelet has been silent for as long as a proof needs.
func (e evidence) silent() bool { return e.lease.Synced && e.lease.Unchanged >= e.lease.Proving() }

// proof remembers what the proof that a machine is off rests on.
type proof struct {
	// claimed: it was said that the machine is off. Renewals are those of the Lease at this moment; an own taint
	// that an earlier process left was set at 0 renewals.
	claimed  bool
	renewals int
	given    bool
	// revoked: our taint has to be removed.
	revoked bool
	// refuted: the Lease was renewed after the claim. It must be unchanged for a while again before another one counts.
	refuted bool
	hand    hand
}

// hand is what is known of an administrator's taint.
type hand struct {
	// seen: the node has the taint. Renewals are those of the Lease when it was seen first.
	seen     bool
	renewals int
	// refuted: the Lease was renewed under the taint, which proves nothing until it is set again: it may be left over,
	// and a kubelet that restarts is silent for as long as a proof needs.
	refuted bool
}

// observe records whether the node has the taint.
func (h *hand) observe(e evidence) {
	switch {
	case !e.others:
		*h = hand{}
	case !h.seen:
		*h = hand{seen: true, renewals: e.lease.Renewals}
	case e.lease.Renewals > h.renewals:
		h.refuted = true
	}
}

// verdict is what the evidence proves.
type verdict struct {
	proof node.Proof
	// complete: nothing is missing but a live read of the Lease.
	complete bool
	// lied: the Lease was renewed after it was said that the machine is off. The answers must be asked for again.
	lied bool
}

// judge weighs the evidence. A machine whose kubelet renews its Lease runs, whatever a provider or a taint says: its
// pods write to their volumes, and a second node must not.
func (p *proof) judge(e evidence) verdict {
	p.hand.observe(e)
	e.others = e.others && !p.hand.refuted
	renewed := e.lease.Renewals > p.renewals
	switch {
	case p.given && (renewed || !e.off()), e.ours && (renewed || p.revoked):
		*p = proof{revoked: e.ours, renewals: e.lease.Renewals, refuted: renewed, hand: p.hand}
		return verdict{proof: node.Revoked, lied: renewed}
	case p.given:
		return verdict{proof: node.Given}
	case !e.off():
		p.claimed, p.revoked = false, false
		return verdict{}
	case p.claimed && renewed, p.refuted && !e.silent():
		*p = proof{renewals: e.lease.Renewals, refuted: true, hand: p.hand}
		return verdict{lied: true}
	case !p.claimed:
		*p = proof{claimed: true, renewals: e.lease.Renewals, hand: p.hand}
	}
	return verdict{proof: node.Begun, complete: e.confirmed() && e.silent()}
}

// instanceOf returns what the last answer says of the machine.
func (e evidence) instanceOf() node.Instance {
	switch {
	case e.shared:
		return node.Shared
	case e.machine.State == instances.Running:
		return node.Running
	case e.machine.State == instances.Stopping:
		return node.Stopping
	case e.machine.State == instances.Off:
		return node.Off
	case e.machine.State == instances.Gone && e.machine.Seen:
		return node.Gone
	case e.machine.State == instances.Gone:
		return node.Unseen
	case e.machine.State == instances.Foreign:
		return node.Foreign
	}
	return node.Unknown
}

// failure returns why the last call of the provider failed, nil if it did not.
func (e evidence) failure() error { return e.machine.Err }
