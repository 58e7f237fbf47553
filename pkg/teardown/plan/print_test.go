package plan_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func document() *teardown.Document {
	d := &teardown.Document{
		Cluster: teardown.Cluster{ID: id, Server: "https://a:6443", Version: "v1.36.3", Nodes: 3},
		Items: []teardown.Item{
			{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolume", Name: "pvc-1", UID: "1"}, Claim: "shop/data",
				ExternalID: "vol-1", Driver: "ebs", Size: 10 << 30, Created: now.Add(-72 * time.Hour), Plan: teardown.PlanDelete,
				Reason: "PolicyDelete", Fate: teardown.Planned, Evidence: teardown.ByFinalizer, Blockers: []blocker.Blocker{}},
			{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolume", Name: "keep\x1b[2J\nme"}, Size: 3 << 29,
				ExternalID: "vol\x07-2", Driver: "d\u202e", Plan: teardown.PlanKeep, Reason: "PolicyRetain", Fate: teardown.Kept},
			{Kind: teardown.LoadBalancer, Object: teardown.Object{Kind: "Service", Namespace: "shop", Name: "web"},
				ExternalID: "192.0.2.1", Plan: teardown.PlanDelete, Reason: "ServesBalancer", Fate: teardown.Remains,
				Evidence: teardown.NoEvidence, Blockers: []blocker.Blocker{{Reason: blocker.DependentsRemain,
					Blockers: []blocker.Blocker{{Reason: blocker.ControllerGone, Holder: "nobody", Next: "kubectl x",
						Object:   blocker.Object{Kind: "Service", Namespace: "shop", Name: "web"},
						Evidence: []blocker.Evidence{{Text: "no Lease"}, {Text: "no pod"}}}}}}},
			{Kind: teardown.Ingress, Object: teardown.Object{Kind: "Ingress", Namespace: "shop", Name: "a"}, Plan: teardown.PlanDelete,
				Fate: teardown.Planned},
			{Kind: teardown.Participant, Object: teardown.Object{Kind: "Alive", Name: "cluster", Namespace: "buckets"},
				ExternalID: "example.com/buckets", Reason: "buckets of dev", Plan: teardown.PlanDelete, Fate: teardown.Gone},
		},
		Workers: []teardown.Worker{{For: "ebs, volumes", Objects: 1, State: "unseen"}},
		Problems: []teardown.Problem{{Reason: "OnNode", Text: "a warning"},
			{Reason: "ServesClusters", Text: "a refusal", Next: "kubectl get clusters", Refuses: true}},
		Incomplete: []string{"no right to list nodes"},
	}
	d.Count()
	return d
}

func TestTotalsAndProblemsArePrintedLast(t *testing.T) {
	var out bytes.Buffer
	if err := plan.Print(&out, document(), now); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{"VOLUME", "delete   shop/data (pvc-1)", "10Gi", "3d", "ebs vol-1, PolicyDelete",
		"keep     keep [2J me", "1.5Gi", "d  vol -2", "remains  shop/web", "its end cannot be seen",
		"ControllerGone: Service shop/web, nobody: no Lease",
		"kubectl x", "example.com/buckets", "buckets: buckets of dev", "WHO DELETES",
		"unseen   ebs, volumes: 1, not visible in the cluster", "Cluster " + id + " at https://a:6443, Kubernetes v1.36.3, 3 nodes",
		"DELETE   1 volume, 1 Ingress; 10Gi of volumes", "GONE     1 participant", "KEEP     1 volume; 1.5Gi of volumes",
		"REMAINS  1 load balancer", "incomplete: no right to list nodes", "! a warning", "REFUSED: a refusal", "kubectl get clusters"} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is missing, or too early, in:\n%s", want, out.String())
		}
		rest = after
	}
	if strings.ContainsAny(out.String(), "\x1b\x07\r") {
		t.Errorf("control characters reach the terminal: %q", out.String())
	}
}

// fieldsOf are the fields that each entry of a list has, whatever their values are.
var fieldsOf = map[string][]string{"problems": {"reason", "text", "next"},
	"items": {"kind", "object", "externalID", "driver", "size", "plan", "reason", "fate", "evidence", "blockers"}}

func TestDocumentIsEncodedWithoutControlCharacters(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		var out bytes.Buffer
		if err := plan.Encode(&out, document(), format); err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		text := out.Bytes()
		if format == "yaml" {
			text, _ = yaml.YAMLToJSON(text)
		}
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"cluster", "phase", "reason", "started", "deadline", "ended", "items", "totals", "problems",
			"incomplete"} {
			if _, has := fields[name]; !has {
				t.Errorf("%s: no field %s", format, name)
			}
		}
		for list, names := range fieldsOf {
			for _, one := range fields[list].([]any) {
				for _, name := range names {
					if _, has := one.(map[string]any)[name]; !has {
						t.Errorf("%s: %s without field %s: %v", format, list, name, one)
					}
				}
			}
		}
		if strings.ContainsAny(out.String(), "\x1b\x07\u202e") {
			t.Errorf("%s: control characters reach the terminal: %q", format, out.String())
		}
	}
}

func TestEmptyPlanSaysThatNothingExists(t *testing.T) {
	var out bytes.Buffer
	if err := plan.Print(&out, &teardown.Document{}, now); err != nil || !strings.Contains(out.String(), "Nothing exists outside") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestPartlyReadClusterIsNotCalledEmpty(t *testing.T) {
	var out bytes.Buffer
	err := plan.Print(&out, &teardown.Document{Incomplete: []string{"no right to list services"}}, now)
	if err != nil || strings.Contains(out.String(), "Nothing exists") || !strings.Contains(out.String(), "not all was read") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
