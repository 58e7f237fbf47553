package manifests

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// outputSchema returns a schema of docs/schemas.
func outputSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("..", "..", "docs", "schemas", name))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON returns the value as a program prints it, decoded for the schema.
func asJSON(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// sampleReport returns a report whose tree has the reason and the worst verdict.
func sampleReport(reason blocker.Reason, worst blocker.Verdict) blocker.Report {
	root := blocker.Blocker{
		Object: blocker.Object{Kind: "VolumeAttachment", Name: "csi-1", UID: "u2"}, Finalizer: "external-attacher/driver",
		Reason: reason,
		Holder: "external-attacher", Verdict: worst, Since: "2026-03-01T12:00:00Z",
		Evidence: []blocker.Evidence{{Source: blocker.FromLease, Text: "renewed"}}, Next: "kubectl get nodes",
	}
	return blocker.Report{
		Object: blocker.Object{Kind: "PersistentVolume", Name: "pv", UID: "u1"}, Verdict: worst,
		Blockers: []blocker.Blocker{{Reason: blocker.VolumeAttached, Verdict: worst, Blockers: []blocker.Blocker{root}}},
	}.Normalized()
}

func TestReportsFitTheSchema(t *testing.T) {
	schema := outputSchema(t, "why.schema.json")
	var all []blocker.Report
	for _, reason := range blocker.Reasons() {
		for worst := blocker.Gone; worst <= blocker.Stuck; worst++ {
			report := sampleReport(reason, worst)
			all = append(all, report)
			if err := schema.Validate(asJSON(t, report)); err != nil {
				t.Errorf("%v, %v: %v", reason, worst, err)
			}
		}
	}
	if err := schema.Validate(asJSON(t, map[string]any{"items": all})); err != nil {
		t.Errorf("list: %v", err)
	}
	if err := schema.Validate(asJSON(t, blocker.Report{Verdict: blocker.Gone}.Normalized())); err != nil {
		t.Errorf("nothing found: %v", err)
	}
}

func TestWrongReportsDoNotFitTheSchema(t *testing.T) {
	schema := outputSchema(t, "why.schema.json")
	valid, err := json.Marshal(sampleReport(blocker.DriverRefuses, blocker.Stuck))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"unknown reason":   {`"DriverRefuses"`, `"DriverSulks"`},
		"unknown verdict":  {`"verdict":"stuck"`, `"verdict":"hopeless"`},
		"unknown source":   {`"source":"lease"`, `"source":"rumor"`},
		"misspelled field": {`"holder"`, `"owner"`},
		"list is null":     {`"incomplete":[]`, `"incomplete":null`},
		"number as text":   {`"since":"2026-03-01T12:00:00Z"`, `"since":1`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(string(valid), change[0], change[1], 1)
			if text == string(valid) {
				t.Fatalf("%s is not in %s", change[0], valid)
			}
			if err := schema.Validate(asJSON(t, json.RawMessage(text))); err == nil {
				t.Errorf("%s fits the schema", text)
			}
		})
	}
}

// Blockers of a teardown are those of "exeunt why".
func TestTeardownsFitTheSchema(t *testing.T) {
	schema := outputSchema(t, "teardown.schema.json")
	for _, reason := range blocker.Reasons() {
		document := teardown.Document{Phase: teardown.TearingDown, Problems: []teardown.Problem{{Reason: "OnNode"}},
			Incomplete: []string{}, Items: []teardown.Item{{Kind: teardown.Volume, Plan: teardown.PlanDelete,
				Fate: teardown.Remains, Evidence: teardown.NoEvidence, Blockers: sampleReport(reason, blocker.Stuck).Blockers}}}
		document.Count()
		if err := schema.Validate(asJSON(t, document)); err != nil {
			t.Errorf("%v: %v", reason, err)
		}
	}
}

func TestAuditsFitTheSchema(t *testing.T) {
	schema := outputSchema(t, "audit.schema.json")
	for reason := verdict.NoReason; reason <= verdict.SeenOnce; reason++ {
		report := `{"orphans":[{"handle":"vol-1","name":"pvc-1","age":"3d","size":"1Gi"}],"ghosts":[{"handle":"vol-2","name":"pv-2","cluster":"a"}],` +
			`"shared":[{"handle":"vol-3","volumes":[{"cluster":"a","name":"pv-3"},{"cluster":"b","name":"pv-4"}]}],"enumerated":true,` +
			`"doubtful":[{"handle":"vol-5","reason":"` + reason.String() + `"}],"incomplete":["no right to list pods"]}`
		err := schema.Validate(asJSON(t, json.RawMessage(report)))
		if fits := err == nil; fits != (reason != verdict.NoReason) {
			t.Errorf("reason %q: %v", reason, err)
		}
	}
}
