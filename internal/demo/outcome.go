package demo

import (
	"fmt"
	"slices"
	"strings"
)

// Outcome is how a run ended.
type Outcome struct {
	// Gate is HonorPVReclaimPolicy in the run.
	Gate bool `json:"gate"`
	// Volume is the handle of the volume whose PV was deleted before its claim.
	Volume string `json:"volume"`
	// Left are the handles of the volumes that the storage system still has,
	// although nothing in the API speaks of them any more.
	Left []string `json:"left"`
}

// Expected are the handles of the volumes that must be left: without the KEP,
// that of the volume whose PV was deleted before its claim.
func (o Outcome) Expected() []string {
	if o.Gate {
		return nil
	}
	return []string{o.Volume}
}

// AsExpected says whether the run showed what it is there to show.
func (o Outcome) AsExpected() bool { return slices.Equal(o.Left, o.Expected()) }

// Verdict is the outcome in a sentence.
func (o Outcome) Verdict() string {
	gate := gateName(o.Gate) + ": "
	switch {
	case !o.AsExpected():
		return fmt.Sprintf("%s%s in the storage system %q, expected %q", gate, countLeft(o.Left), o.Left, o.Expected())
	case o.Gate:
		return gate + countLeft(o.Left) + " in the storage system"
	}
	return fmt.Sprintf("%s%s behind in the storage system (%s): this is the leak", gate, countLeft(o.Left), strings.Join(o.Left, ", "))
}

// Why says how the run came to its outcome, if that is the expected one.
func (o Outcome) Why() string {
	switch {
	case !o.AsExpected():
		return ""
	case o.Gate:
		return "The finalizer external-provisioner held the PV until the driver had deleted the volume."
	}
	return "Nothing held the PV for the provisioner: it went before anybody called DeleteVolume."
}

// gateName names the gate and its value as the flag --feature-gates does.
func gateName(on bool) string { return fmt.Sprintf("HonorPVReclaimPolicy=%t", on) }

// countLeft says how many volumes are left.
func countLeft(left []string) string {
	if len(left) == 1 {
		return "1 volume left"
	}
	return fmt.Sprintf("%d volumes left", len(left))
}

// unexpected returns an error that names the runs that did not show what they
// are there to show, and nil if all did.
func unexpected(outcomes []Outcome) error {
	var verdicts []string
	for _, outcome := range outcomes {
		if !outcome.AsExpected() {
			verdicts = append(verdicts, outcome.Verdict())
		}
	}
	if len(verdicts) == 0 {
		return nil
	}
	return fmt.Errorf("show the leak and its end: %s", strings.Join(verdicts, "; "))
}
