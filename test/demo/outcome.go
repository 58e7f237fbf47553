package demo

import (
	"fmt"
	"slices"
	"strings"
)

// Outcome is the result of a run.
type Outcome struct {
	// Gate is HonorPVReclaimPolicy in the run.
	Gate bool `json:"gate"`
	// Volume is the handle of the volume whose PV was deleted before its claim.
	Volume string `json:"volume"`
	// Left are the handles of the volumes that the storage system still has although no
	// PersistentVolume names them.
	Left []string `json:"left"`
}

// Expected are the handles of the volumes that must be left: with the gate off, the
// volume whose PV was deleted before its claim.
func (o Outcome) Expected() []string {
	if o.Gate {
		return nil
	}
	return []string{o.Volume}
}

// AsExpected returns true if exactly the expected volumes are left.
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
	return fmt.Sprintf("%s%s behind in the storage system (%s): this is the leak", gate, countLeft(o.Left),
		strings.Join(o.Left, ", "))
}

// Why returns the reason for an expected outcome, or "".
func (o Outcome) Why() string {
	switch {
	case !o.AsExpected():
		return ""
	case o.Gate:
		return "The finalizer external-provisioner kept the PV until the driver had deleted the volume."
	}
	return "The PV had no finalizer of the provisioner: it was gone before any program called DeleteVolume."
}

// gateName returns the gate and its value as in the flag --feature-gates.
func gateName(on bool) string { return fmt.Sprintf("HonorPVReclaimPolicy=%t", on) }

// countLeft returns the number of volumes left, in words.
func countLeft(left []string) string {
	if len(left) == 1 {
		return "1 volume left"
	}
	return fmt.Sprintf("%d volumes left", len(left))
}

// unexpected returns an error that names the runs with an unexpected outcome, or nil.
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
