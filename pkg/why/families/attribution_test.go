package families_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

func TestAttributionNames(t *testing.T) {
	enumtest.ExpectNames(t, families.NoFields, families.Managed)
	enumtest.ExpectNames(t, families.Program, families.Deployer)
}

// finalizer is the finalizer that the tests attribute.
const finalizer = "example.com/x"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// entry is the managedFields entry of a manager that owns the finalizers.
func entry(manager string, lastWrite time.Time, finalizers ...string) metav1.ManagedFieldsEntry {
	owned := map[string]any{".": struct{}{}}
	for _, finalizer := range finalizers {
		quoted, _ := json.Marshal(finalizer)
		owned["v:"+string(quoted)] = struct{}{}
	}
	fields, _ := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:finalizers": owned}})
	return rawEntry(manager, lastWrite, string(fields))
}

func rawEntry(manager string, lastWrite time.Time, fields string) metav1.ManagedFieldsEntry {
	found := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		FieldsV1: metav1.NewFieldsV1(fields)}
	if !lastWrite.IsZero() {
		found.Time = &metav1.Time{Time: lastWrite}
	}
	return found
}

func TestAttribute(t *testing.T) {
	status := entry("widgets", noon, finalizer)
	status.Subresource = "status"
	for name, tc := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		texts  []string
	}{
		"one manager": {
			[]metav1.ManagedFieldsEntry{entry("widgets", noon, "other", finalizer)},
			[]string{"set by widgets, which last wrote at 2026-03-01T12:00:00Z"},
		},
		"two managers, latest first": {
			[]metav1.ManagedFieldsEntry{entry("a", noon, finalizer), entry("b", noon.Add(time.Hour), finalizer)},
			[]string{"set by b, which last wrote at 2026-03-01T13:00:00Z", "set by a, which last wrote at 2026-03-01T12:00:00Z"},
		},
		"through a subresource": {
			[]metav1.ManagedFieldsEntry{status},
			[]string{"set by widgets through /status, which last wrote at 2026-03-01T12:00:00Z"},
		},
		"without a time": {
			[]metav1.ManagedFieldsEntry{entry("widgets", time.Time{}, finalizer)},
			[]string{"set by widgets, at an unknown time"},
		},
		"without a name": {
			[]metav1.ManagedFieldsEntry{entry("", noon, finalizer)},
			[]string{"set by a manager without a name, which last wrote at 2026-03-01T12:00:00Z; many programs have this name"},
		},
		"by hand": {
			[]metav1.ManagedFieldsEntry{entry("kubectl-edit", noon, finalizer)},
			[]string{"set by kubectl-edit, which last wrote at 2026-03-01T12:00:00Z; set by hand or restored"},
		},
		"name of many programs": {
			[]metav1.ManagedFieldsEntry{entry("manager", noon, finalizer)},
			[]string{"set by manager, which last wrote at 2026-03-01T12:00:00Z; many programs have this name"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectAttribution(t, families.Attribute(tc.fields, finalizer), families.Managed, tc.texts)
		})
	}
}

func TestAttributeWithoutManager(t *testing.T) {
	const none = "no manager owns the finalizer: admission or the DELETE request added it, or its record was removed"
	expectAttribution(t, families.Attribute(nil, finalizer), families.NoFields,
		[]string{"managedFields are empty: nothing records who set the finalizer"})
	for name, entry := range map[string]metav1.ManagedFieldsEntry{
		"emptied entry":                {},
		"manager of another finalizer": entry("widgets", noon, "example.com/xy"),
		"list without values":          entry("widgets", noon),
		"no fields":                    {Manager: "widgets"},
		"fields not JSON":              rawEntry("widgets", noon, "{"),
		"fields of a list":             rawEntry("widgets", noon, `{"f:metadata":[]}`),
		"finalizer elsewhere":          rawEntry("widgets", noon, `{"f:spec":{"f:finalizers":{"v:\"example.com/x\"":{}}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			got := families.Attribute([]metav1.ManagedFieldsEntry{entry}, finalizer)
			expectAttribution(t, got, families.NoManager, []string{none})
			if len(got.Managers) != 0 || len(got.Others) != 1 {
				t.Errorf("%d managers and %d others, want 0 and 1", len(got.Managers), len(got.Others))
			}
		})
	}
}

func expectAttribution(t *testing.T, got families.Attribution, record families.Record, texts []string) {
	t.Helper()
	if got.Record != record {
		t.Errorf("Record = %v, want %v", got.Record, record)
	}
	if found := got.Text(); !slices.Equal(found, texts) {
		t.Errorf("Text() = %q, want %q", found, texts)
	}
}

func TestAttributeQuotedFinalizer(t *testing.T) {
	for _, finalizer := range []string{`a"b`, `a\b`, "ü/x", "a b", "<x>&"} {
		if got := families.Attribute([]metav1.ManagedFieldsEntry{entry("m", noon, finalizer)},
			finalizer); got.Record != families.Managed {
			t.Errorf("finalizer %q: %v, want managed", finalizer, got.Record)
		}
	}
}

func TestOtherManagersAreListed(t *testing.T) {
	got := families.Attribute([]metav1.ManagedFieldsEntry{
		entry("sets", noon, "example.com/x"), rawEntry("removes", noon.Add(time.Minute),
			`{"f:metadata":{"f:annotations":{}}}`), entry("lists", noon),
	}, "example.com/x")
	if len(got.Managers) != 1 || len(got.Others) != 2 || got.Others[0].Name != "removes" || got.Others[1].Name != "lists" {
		t.Errorf("Attribute() = %+v, want sets, and removes and lists as others", got)
	}
}

func TestAgentOfManager(t *testing.T) {
	for agent, names := range map[families.Agent][]string{
		families.Default: {"", "manager", "Go-http-client", "node-fetch", "OpenAPI-Generator", "__debug_bin123",
			"holder.test", "controller"},
		families.ByHand: {"kubectl", "kubectl-edit", "kubectl-client-side-apply", "kubectl-patch", "kubectl-create",
			"oc-edit", "Mozilla"},
		families.Restore:  {"velero", "velero-server", "before-first-apply"},
		families.Deployer: {"helm", "argocd-controller", "kustomize-controller", "HashiCorp"},
		families.Program:  {"widgets-operator", "cert-manager", "kube-controller-manager", "kubectlx", "managers"},
	} {
		for _, name := range names {
			if got := (families.Manager{Name: name}).Agent(); got != agent {
				t.Errorf("Agent() of %q = %v, want %v", name, got, agent)
			}
		}
	}
}

// candidates returns candidates a, b, c with every combination of facts, 4 bits each.
func candidates(bits int) []families.Candidate {
	var all []families.Candidate
	for i, name := range []string{"a", "b", "c"} {
		fact := func(bit int) bool { return bits>>(4*i+bit)&1 != 0 }
		all = append(all, families.Candidate{
			Workload: name, ServesGroup: fact(0), RunsManager: fact(1), HasRights: fact(2), HoldsLease: fact(3),
		})
	}
	return all
}

func TestSuspectIsNamedOnlyIfExactlyOneFits(t *testing.T) {
	for bits := range 1 << 12 {
		all := candidates(bits)
		var once, twice []string
		for _, candidate := range all {
			facts := strings.Count(candidate.Reasons(), ",") + 1
			if candidate.Reasons() == "" {
				continue
			}
			once = append(once, candidate.Workload)
			if facts >= 2 {
				twice = append(twice, candidate.Workload)
			}
		}
		want := once
		if len(twice) == 1 {
			want = twice
		}
		suspects, named := families.Suspects(all)
		var got []string
		for _, suspect := range suspects {
			got = append(got, suspect.Workload)
		}
		if named != (len(twice) == 1) || !slices.Equal(got, want) {
			t.Errorf("Suspects(%+v) = %v, %v, want %v, %v", all, got, named, want, len(twice) == 1)
		}
	}
}

func TestFactsOfOneWorkloadAreJoined(t *testing.T) {
	suspects, named := families.Suspects([]families.Candidate{
		{Workload: "a", RunsManager: true}, {Workload: "b", HasRights: true}, {Workload: "a", HoldsLease: true},
	})
	if !named || len(suspects) != 1 || suspects[0].Workload != "a" || !suspects[0].RunsManager || !suspects[0].HoldsLease {
		t.Errorf("Suspects() = %+v, %v, want a, by both facts", suspects, named)
	}
	if suspects, named := families.Suspects(nil); named || len(suspects) != 0 {
		t.Errorf("Suspects(nil) = %+v, %v", suspects, named)
	}
}

func TestFitsGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizer, group string
		want             bool
	}{
		"same domain":              {"example.com/x", "example.com", true},
		"finalizer below group":    {"widget.example.com/x", "example.com", true},
		"group below finalizer":    {"example.com/x", "stable.example.com", true},
		"without a slash":          {"widget.example.com", "example.com", true},
		"another domain":           {"example.org/x", "example.com", false},
		"suffix without a dot":     {"myexample.com/x", "example.com", false},
		"shared domain":            {"kueue.x-k8s.io/x", "x-k8s.io", false},
		"group of shared domain":   {"k8s.io/x", "apps.k8s.io", false},
		"same group in Kubernetes": {"kueue.x-k8s.io/x", "kueue.x-k8s.io", true},
		"core group":               {"example.com/x", "", false},
		"group without a domain":   {"apps/x", "apps", false},
		"top-level domain":         {"com/x", "example.com", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := families.FitsGroup(tc.finalizer, tc.group); got != tc.want {
				t.Errorf("FitsGroup(%q, %q) = %v, want %v", tc.finalizer, tc.group, got, tc.want)
			}
		})
	}
}

func FuzzAttribute(f *testing.F) {
	f.Add(`{"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/x\"":{}}}}`, "example.com/x")
	f.Add(`{"f:metadata":{"f:finalizers":{"v:example.com/x":{}}}}`, "example.com/x")
	f.Add(`{"f:metadata":null}`, "")
	f.Fuzz(func(t *testing.T, fields, finalizer string) {
		got := families.Attribute([]metav1.ManagedFieldsEntry{rawEntry("m", noon, fields)}, finalizer)
		if len(got.Managers)+len(got.Others) != 1 || len(got.Text()) != 1 {
			t.Errorf("Attribute(%q, %q) = %+v", fields, finalizer, got)
		}
	})
}
