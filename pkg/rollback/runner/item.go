package runner

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/rollback"
)

// Item is one thing that rollback decides about: an object, or an annotation or finalizer of
// an object.
type Item struct {
	Object blocker.Object `json:"object"`
	// Part is the annotation or finalizer, "" for the object itself.
	Part   string `json:"part"`
	Action string `json:"action"`
	Reason string `json:"reason"`
	// Note says more, such as which disk is concerned.
	Note string `json:"note"`

	decision rollback.Decision
	// remove removes it. lease is the Lease of the journal to save first.
	remove func(context.Context) error
	lease  *coordinationv1.Lease
}

// newItem returns the item with its decision.
func newItem(object blocker.Object, part string, decision rollback.Decision, remove func(context.Context) error) Item {
	return Item{
		Object: object, Part: part, Action: decision.Action.String(), Reason: decision.Reason.String(),
		decision: decision, remove: remove,
	}
}

// String returns the name of the item.
func (i Item) String() string {
	if i.Part == "" {
		return i.Object.String()
	}
	return fmt.Sprintf("%s of %s", i.Part, i.Object)
}

// sentence says what happens with the item, and why.
func (i Item) sentence() string {
	text := fmt.Sprintf("%s: %s", i, i.decision.Reason.Sentence())
	if i.Note != "" {
		text += " (" + i.Note + ")"
	}
	return text
}
