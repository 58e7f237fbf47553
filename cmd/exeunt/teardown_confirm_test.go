package main

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
)

// A script that deletes machines reads the exit code: 0 only if all that was to be deleted is known to be gone.
func TestExitCodeSaysWhatIsLeft(t *testing.T) {
	item := func(fate teardown.Fate, verdicts ...blocker.Verdict) teardown.Item {
		made := teardown.Item{Kind: teardown.Volume, Plan: teardown.PlanDelete, Fate: fate}
		for _, verdict := range verdicts {
			made.Blockers = append(made.Blockers, blocker.Blocker{Verdict: verdict})
		}
		return made
	}
	kept := teardown.Item{Kind: teardown.Volume, Plan: teardown.PlanKeep, Fate: teardown.Kept}
	gone, stuck, waits := item(teardown.Gone), item(teardown.Remains, blocker.Stuck), item(teardown.Remains, blocker.Waiting)
	unknown, unread := item(teardown.Unknown), []string{"not read"}
	for name, tc := range map[string]struct {
		phase      teardown.Phase
		items      []teardown.Item
		incomplete []string
		early      bool
		want       int
	}{
		"all is gone":                 {phase: teardown.Complete, items: []teardown.Item{gone, kept}},
		"complete, one unknown":       {phase: teardown.Complete, items: []teardown.Item{gone, unknown}, want: 2},
		"complete, a record edited":   {phase: teardown.Complete, incomplete: unread, want: 2},
		"a deadline":                  {phase: teardown.Stopped, items: []teardown.Item{gone, waits}, want: 2},
		"all that remains is stuck":   {phase: teardown.Stopped, items: []teardown.Item{gone, stuck, kept}, want: 3},
		"one is stuck, one not":       {phase: teardown.Stopped, items: []teardown.Item{stuck, waits}, want: 2},
		"one is stuck, one unknown":   {phase: teardown.Stopped, items: []teardown.Item{stuck, unknown}, want: 2},
		"stuck, and not all was read": {phase: teardown.Stopped, items: []teardown.Item{stuck}, incomplete: unread, want: 2},
		"it never started":            {phase: teardown.Armed, items: []teardown.Item{stuck}, early: true, want: 2},
		"nothing is known":            {phase: teardown.Stopped, want: 2},
	} {
		flags := teardownFlags{config: genericclioptions.NewConfigFlags(true), confirm: clusterID,
			timeout: teardownTimeout(alive.DefaultTimeout)}
		document := &teardown.Document{Items: tc.items, Incomplete: tc.incomplete}
		if !tc.early {
			document.Started = new(time.Time)
		}
		err := flags.codeOf(document, &runner.Outcome{Phase: tc.phase, Message: "why"})
		if code := terminal.ExitStatus(err); code != tc.want {
			t.Errorf("%s: exit code %d, want %d: %v", name, code, tc.want, err)
		}
		if tc.want > 0 && tc.phase != teardown.Complete && !strings.Contains(err.Error(), "teardown --confirm="+clusterID) {
			t.Errorf("%s: how to go on is missing: %v", name, err)
		}
	}
}

// The record of a complete teardown stays when its freeze is deleted: the cluster lived on, and made new disks.
func TestRecordOfEarlierTeardownIsNoSuccess(t *testing.T) {
	volume := func(uid string, plan teardown.Plan) teardown.Item {
		return teardown.Item{Plan: plan, Fate: teardown.Gone, Object: teardown.Object{Kind: "PersistentVolume", Name: "pv", UID: uid}}
	}
	list := func(items ...teardown.Item) []teardown.Item { return items }
	one, two := volume("1", teardown.PlanDelete), volume("2", teardown.PlanDelete)
	kept, ofClaim := volume("1", teardown.PlanKeep), volume("3", teardown.PlanKeep)
	ofClaim.ClaimUID = "1"
	for name, tc := range map[string]struct {
		planned, recorded []teardown.Item
		known             *alive.Alive
		earlier           bool
	}{
		"this teardown":           {planned: list(one), recorded: list(one, two)},
		"nothing to delete":       {planned: list(kept), recorded: list(two)},
		"an earlier one":          {planned: list(one), recorded: list(two), earlier: true},
		"it was kept then":        {planned: list(one), recorded: list(kept), earlier: true},
		"its volume was kept":     {planned: list(one), recorded: list(ofClaim)},
		"Alive was there":         {planned: list(one), known: alive.New()},
		"one of two is a new one": {planned: list(one, two), recorded: list(one), earlier: true},
	} {
		flags := teardownFlags{config: genericclioptions.NewConfigFlags(true), confirm: clusterID}
		err := flags.recordedEarlier(&plan.Plan{Alive: tc.known, Document: teardown.Document{Items: tc.planned}},
			&teardown.Document{Items: tc.recorded}, &runner.Outcome{Phase: teardown.Complete})
		if (err != nil) != tc.earlier {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "exeunt teardown remove") || terminal.ExitStatus(err) != exitError) {
			t.Errorf("%s: the way on is missing: %v", name, err)
		}
	}
}

// newRecorded serves a cluster of which the record of an earlier teardown says that all is gone.
func newRecorded(t *testing.T) *doomed {
	t.Helper()
	c := newDoomed(t, "orders")
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "7",
			Annotations: map[string]string{"lifecycle.exeunt.io/alive": "old"}}
	}
	kind := func(version, name string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: version, Kind: name} }
	const admission = "admissionregistration.k8s.io/v1"
	c.objects["namespaces"] = append(c.objects["namespaces"],
		&v1.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: meta(teardown.Namespace)})
	definition := &metav1.PartialObjectMetadata{TypeMeta: kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
		ObjectMeta: meta(alive.CRD)}
	c.objects["customresourcedefinitions"] = []metav1.Object{definition}
	for _, name := range []string{teardown.GuardName, teardown.DefinitionGuardName, teardown.FreezeName} {
		c.objects["validatingadmissionpolicies"] = append(c.objects["validatingadmissionpolicies"],
			&metav1.PartialObjectMetadata{TypeMeta: kind(admission, "ValidatingAdmissionPolicy"), ObjectMeta: meta(name)})
		c.objects["validatingadmissionpolicybindings"] = append(c.objects["validatingadmissionpolicybindings"],
			&metav1.PartialObjectMetadata{TypeMeta: kind(admission, "ValidatingAdmissionPolicyBinding"), ObjectMeta: meta(name)})
	}
	for _, name := range []string{teardown.ReportName, "exeunt-teardown-plan-0"} {
		record := &v1.ConfigMap{TypeMeta: kind("v1", "ConfigMap"), ObjectMeta: meta(name),
			Data: map[string]string{teardown.DocumentKey: `{"phase":"Complete"}`}}
		record.Namespace, record.Labels = teardown.Namespace, map[string]string{"lifecycle.exeunt.io/record": "teardown"}
		record.Annotations = map[string]string{teardown.PhaseAnnotation: "Complete", "lifecycle.exeunt.io/alive": "old"}
		c.objects["configmaps"] = append(c.objects["configmaps"], record)
	}
	return c
}

func TestDisksAfterEarlierTeardownAreNoSuccess(t *testing.T) {
	out, code, err := newRecorded(t).teardown(t, "--confirm=f81d4fae")
	if code != exitError || !strings.Contains(err.Error(), "PersistentVolume pv-orders is to be deleted") {
		t.Errorf("exit code %d, error %v, although pv-orders is there:\n%s", code, err, out)
	}
}
