package manifests

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/exeunt-io/exeunt/pkg/blocker"
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

// sampleReport returns a report whose tree has the reason and the verdict.
func sampleReport(reason blocker.Reason, verdict blocker.Verdict) blocker.Report {
	root := blocker.Blocker{
		Object: blocker.Object{Kind: "VolumeAttachment", Name: "csi-1", UID: "u2"}, Finalizer: "external-attacher/driver", Reason: reason,
		Holder: "external-attacher", Verdict: verdict, Since: "2026-03-01T12:00:00Z",
		Evidence: []blocker.Evidence{{Source: blocker.FromLease, Text: "renewed"}}, Next: "kubectl get nodes",
	}
	return blocker.Report{
		Object: blocker.Object{Kind: "PersistentVolume", Name: "pv", UID: "u1"}, Verdict: verdict,
		Blockers: []blocker.Blocker{{Reason: blocker.VolumeAttached, Verdict: verdict, Blockers: []blocker.Blocker{root}}},
	}.Normalized()
}

func TestReportsFitTheSchema(t *testing.T) {
	schema := outputSchema(t, "why.schema.json")
	var all []blocker.Report
	for _, reason := range blocker.Reasons() {
		for verdict := blocker.Gone; verdict <= blocker.Stuck; verdict++ {
			report := sampleReport(reason, verdict)
			all = append(all, report)
			if err := schema.Validate(asJSON(t, report)); err != nil {
				t.Errorf("%v, %v: %v", reason, verdict, err)
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
