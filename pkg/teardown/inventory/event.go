package inventory

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/teardown/claim"
)

// failures is what the events of a provisioner say of a claim.
type failures struct {
	// called is when the last call began, answered when the last one failed.
	called, answered time.Time
	outcome          provision.Outcome
	// open: a call of before proves nothing, so that a disk of that call may exist.
	open bool
	// unjournaled: our provisioner has called without an entry in its journal, for the request is too large.
	unjournaled bool
}

// The reasons of events that say what a provisioner does.
const (
	called      = "Provisioning"
	failed      = "ProvisioningFailed"
	unjournaled = "ProvisioningWithoutJournal"
)

// ProvisioningEvents are the reasons of the events of claims that an inventory reads.
var ProvisioningEvents = []string{called, failed, unjournaled}

// setEvent keeps what a provisioner says of a claim. Events expire; what they said stays true.
func (i *Inventory) setEvent(e *v1.Event) {
	uid := e.InvolvedObject.UID
	if e.InvolvedObject.Kind != claimKind || uid == "" || !slices.Contains(ProvisioningEvents, e.Reason) {
		return
	}
	facts := i.failures[uid]
	if facts == nil {
		facts = &failures{}
		i.failures[uid] = facts
	}
	at := timeOf(e)
	switch e.Reason {
	case unjournaled:
		facts.unjournaled = true
		return
	case called:
		if at.After(facts.called) {
			facts.called = at
		}
		return
	}
	outcome := outcomeOf(e.Message)
	facts.open = facts.open || leavesDoubt(outcome)
	if !at.Before(facts.answered) {
		facts.answered, facts.outcome = at, outcome
	}
}

// timeOf returns when the event happened last.
func timeOf(e *v1.Event) time.Time {
	at := e.CreationTimestamp.Time
	for _, other := range []time.Time{e.FirstTimestamp.Time, e.EventTime.Time, e.LastTimestamp.Time} {
		if other.After(at) {
			at = other
		}
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}

// outcomeOf returns what the message of a failure says of the disk. A message without a code proves nothing.
func outcomeOf(message string) provision.Outcome {
	const before = "rpc error: code = "
	_, rest, found := strings.Cut(message, before)
	if !found {
		return provision.Unanswered
	}
	name, _, _ := strings.Cut(rest, " ")
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if code.String() == name {
			return provision.OutcomeOf(code)
		}
	}
	return provision.Unanswered
}

func leavesDoubt(o provision.Outcome) bool {
	return o == provision.Unanswered || o == provision.Uncertain || o == provision.Mismatch
}

// final reports whether the last answer says that there is no disk. A code such as ResourceExhausted says so of the
// first call only.
func (f *failures) final() bool {
	switch {
	case f == nil, f.answered.IsZero(), f.called.After(f.answered):
		return false
	case f.outcome == provision.NoVolume:
		return true
	}
	return !leavesDoubt(f.outcome) && !f.open
}

// requestOf returns whether a volume was requested for a pending claim (#20, #21).
func (i *Inventory) requestOf(c *request, entries map[types.UID]entry, now time.Time) claim.Request {
	_, inJournal := entries[c.uid]
	delayed, known := i.delayed[c.class]
	switch {
	case inJournal:
		return claim.Open
	case i.failures[c.uid].final():
		delete(i.requested, c.uid)
		return claim.Failed
	case c.provisioner == "", known && delayed && c.node == "", i.isJournaled(c.provisioner, c.uid):
		return claim.Unrequested
	}
	if i.requested[c.uid].IsZero() {
		i.requested[c.uid] = now
	}
	if now.Sub(i.requested[c.uid]) >= i.options.RequestWait {
		return claim.Unanswered
	}
	return claim.Open
}

func (i *Inventory) hasClaim(c *request) bool {
	known := i.claims[c.key]
	return known != nil && known.uid == c.uid
}

const claimKind = "PersistentVolumeClaim"

// nameOfVolume returns what the volume of a claim is called in storage by default.
func nameOfVolume(uid types.UID) string { return "pvc-" + string(uid) }
