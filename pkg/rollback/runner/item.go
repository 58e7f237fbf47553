package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// change removes or rewrites it, and returns the object as it is then, nil if the object itself is deleted.
	change func(context.Context) (metav1.Object, error)
	// lease is the Lease of the journal to save first.
	lease *coordinationv1.Lease
}

// newItem returns the item with its decision.
func newItem(object blocker.Object, part string, decision rollback.Decision,
	change func(context.Context) (metav1.Object, error)) Item {
	return Item{
		Object: object, Part: part, Action: decision.Action.String(), Reason: decision.Reason.String(),
		decision: decision, change: change,
	}
}

// String returns the name of the item.
func (i Item) String() string {
	if i.Part == "" {
		return i.Object.String()
	}
	return fmt.Sprintf("%s of %s", i.Part, i.Object)
}

// remains reports whether the object still has the part: an admission webhook can undo a write.
func (i Item) remains(object metav1.Object) bool {
	kind, name, _ := strings.Cut(i.Part, " ")
	if kind == "annotation" {
		name, _, _ = strings.Cut(name, ":")
		_, has := object.GetAnnotations()[name]
		return has
	}
	return slices.ContainsFunc(strings.Fields(name),
		func(name string) bool { return slices.Contains(object.GetFinalizers(), name) })
}

// sentence says what happens with the item, and why.
func (i Item) sentence() string {
	text := fmt.Sprintf("%s: %s", i, i.decision.Reason.Sentence())
	if i.Note != "" {
		text += " (" + i.Note + ")"
	}
	return text
}
