package status

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// named returns an object of a kind without fields of its own.
func named(version, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind,
		"metadata": map[string]any{"name": name, "uid": "id"}}}
}

// guard adds the policy of the name, and its binding.
func guard(objects clustertest.Objects, name string) {
	for resource, kind := range map[string]string{"validatingadmissionpolicies": "ValidatingAdmissionPolicy",
		"validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBinding"} {
		objects[resource] = append(objects[resource], named("admissionregistration.k8s.io/v1", kind, name))
	}
}

// tornDown returns a cluster whose teardown has begun a minute ago, as the function changes it.
func tornDown(t *testing.T, change func(a *alive.Alive, objects clustertest.Objects)) clustertest.Objects {
	t.Helper()
	objects := clustertest.Objects{"namespaces": {named("v1", "Namespace", "kube-system")},
		"leases": {leaderLease(teardown.Namespace, teardown.LeaseName, "laptop_1", 0)}}
	for _, name := range []string{deploy.AlivePolicy, deploy.DefinitionPolicy, teardown.FreezeName} {
		guard(objects, name)
	}
	begun := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
	a := alive.New()
	a.UID, a.DeletionTimestamp = "alive", &begun
	a.Finalizers = append(a.Finalizers, "buckets.example.com/teardown")
	a.Spec = alive.Spec{Protected: ptr.To(false), Confirm: "id", ConfirmedAt: &begun}
	a.Status = alive.Status{Phase: alive.TearingDown, Reason: "Remaining", Message: "awaited", RemainingCount: 3,
		Conditions: []metav1.Condition{{Type: alive.ConditionStarted, Status: metav1.ConditionTrue}}}
	change(a, objects)
	content, err := alive.ToUnstructured(a)
	if err != nil {
		t.Fatal(err)
	}
	objects["alives"] = []metav1.Object{content}
	return objects
}

// readServing reads a cluster whose API server serves Alive, and refuses the requests of the resource, "" for none.
func readServing(t *testing.T, objects clustertest.Objects, forbidden string) Report {
	t.Helper()
	served := clustertest.Discovery{Next: objects, Served: map[string][]metav1.APIResource{
		"lifecycle.exeunt.io/v1alpha1": {{Name: "alives", Kind: "Alive"}}}}
	return Read(t.Context(), Options{Reader: clustertest.NewReader(t, func(w http.ResponseWriter, r *http.Request) {
		if forbidden == "" || !strings.Contains(r.URL.Path+"/", "/"+forbidden+"/") {
			served.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	})})
}

// protect makes the Alive one that nobody has deleted, without a runner.
func protect(a *alive.Alive, o clustertest.Objects) {
	a.DeletionTimestamp, a.Spec, a.Status = nil, alive.Spec{Protected: ptr.To(true)}, alive.Status{Phase: alive.Protected, Reason: "Protected"}
	delete(o, "leases")
}

// unfreeze removes the freeze.
func unfreeze(o clustertest.Objects) {
	for resource := range o {
		if strings.HasPrefix(resource, "validating") {
			o[resource] = o[resource][:2]
		}
	}
}

// arm gives alive-controller the right to tear down.
func arm(o clustertest.Objects) {
	o["clusterrolebindings"] = []metav1.Object{named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", deploy.ArmedBinding)}
}

var teardowns = map[string]struct {
	change func(a *alive.Alive, objects clustertest.Objects)
	line   []string // parts of the line
	want   []string // parts of the findings
}{
	"protected": {func(a *alive.Alive, o clustertest.Objects) { protect(a, o); unfreeze(o) },
		[]string{"Protected, Protected; spec.protected is true; participants buckets.example.com/teardown; freeze absent"}, nil},
	"under way": {func(_ *alive.Alive, o clustertest.Objects) { arm(o) },
		[]string{"TearingDown, Remaining: awaited; spec permits the teardown until 20", "; 3 to delete are left; ", "freeze in force; carried out by ", "laptop_1", "; alive-controller may delete"}, nil},
	"nobody leads": {func(_ *alive.Alive, o clustertest.Objects) { delete(o, "leases") }, nil,
		[]string{"nobody was seen to carry the teardown out: the Lease exeunt-system/exeunt-teardown is not held\nexeunt why alive/cluster"}},
	"#56 stopped": {func(a *alive.Alive, _ clustertest.Objects) { a.Spec.Protected = ptr.To(true) }, nil,
		[]string{"the teardown is stopped, and nothing new is deleted: spec.protected is true\nexeunt why alive/cluster"}},
	"#68 freeze is gone": {func(_ *alive.Alive, o clustertest.Objects) { unfreeze(o) }, []string{"freeze absent"},
		[]string{"the teardown has started, and the freeze exeunt-teardown-freeze is absent"}},
	"#68 freeze is unbound": {func(_ *alive.Alive, o clustertest.Objects) {
		o["validatingadmissionpolicybindings"] = o["validatingadmissionpolicybindings"][:2]
	}, []string{"freeze incomplete"}, []string{"the freeze exeunt-teardown-freeze is incomplete"}},
	"freeze is left behind": {protect, nil, []string{"No teardown is under way. If the cluster stays, this removes the freeze and Alive:\nexeunt teardown remove"}},
	"right is left behind": {func(a *alive.Alive, o clustertest.Objects) { protect(a, o); unfreeze(o); arm(o) }, nil,
		[]string{"no teardown is permitted: spec.protected is true. This takes the right back:\nkubectl delete clusterrolebinding exeunt-teardown"}},
	"guard is unbound": {func(_ *alive.Alive, o clustertest.Objects) {
		o["validatingadmissionpolicybindings"] = o["validatingadmissionpolicybindings"][1:]
	}, nil, []string{"ValidatingAdmissionPolicyBinding exeunt-alive does not exist: it guards Alive"}},
	"armed, not ready": {func(a *alive.Alive, o clustertest.Objects) {
		unfreeze(o)
		a.DeletionTimestamp, a.Status = nil, alive.Status{Phase: alive.Armed, Reason: "NotReady", Conditions: []metav1.Condition{
			{Type: alive.ConditionReady, Status: metav1.ConditionFalse, Reason: "RightsMissing", Message: "it may not delete"}}}
	}, nil, []string{"a deletion of Alive would not begin it: RightsMissing, it may not delete"}},
}

func TestTeardownOfCluster(t *testing.T) {
	for name, tc := range teardowns {
		t.Run(name, func(t *testing.T) {
			report := readServing(t, tornDown(t, tc.change), "")
			got := report.Teardown
			if got == nil || len(got.Findings) != len(tc.want) || len(got.Unseen) > 0 {
				t.Fatalf("%+v, want %q", got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(got.Findings[i], want) {
					t.Errorf("%q, want %q", got.Findings[i], want)
				}
			}
			for _, want := range tc.line {
				if !strings.Contains(got.describe(), want) {
					t.Errorf("%q, want %q", got.describe(), want)
				}
			}
			if len(report.Findings) > 0 || report.Protection == ProtectionPartly {
				t.Errorf("the volumes are said to be %v: %q", report.Protection, report.Findings)
			}
		})
	}
}

func TestAliveOfLaterVersionIsFinding(t *testing.T) {
	objects := tornDown(t, func(*alive.Alive, clustertest.Objects) {})
	objects["alives"][0].(*unstructured.Unstructured).SetAPIVersion("lifecycle.exeunt.io/v2")
	if got := readServing(t, objects, "").Teardown; got == nil || !strings.Contains(strings.Join(got.Findings, "\n"), "Alive is not understood, and permits nothing") {
		t.Errorf("%+v", got)
	}
}

func TestFreezeOutlivesAlive(t *testing.T) {
	objects := clustertest.Objects{}
	guard(objects, teardown.FreezeName)
	got := Read(t.Context(), Options{Reader: clustertest.NewReader(t, objects.ServeHTTP)}).Teardown
	if got == nil || !strings.HasPrefix(got.describe(), "Alive is absent; freeze in force") || len(got.Findings) != 1 ||
		!strings.HasSuffix(got.Findings[0], "\nexeunt teardown remove") {
		t.Errorf("%+v", got)
	}
}

func TestClusterWithoutAliveHasNoTeardown(t *testing.T) {
	for _, forbidden := range []string{"", "validatingadmissionpolicies"} {
		reader := clustertest.NewReader(t, func(w http.ResponseWriter, r *http.Request) {
			if forbidden != "" && strings.Contains(r.URL.Path, forbidden) {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			clustertest.Discovery{Next: clustertest.Objects{}}.ServeHTTP(w, r)
		})
		report := Read(t.Context(), Options{Reader: reader})
		if report.Teardown != nil || strings.Contains(strings.Join(report.Incomplete, "\n"), "validatingadmissionpolic") {
			t.Errorf("without %s: %+v, %q", forbidden, report.Teardown, report.Incomplete)
		}
	}
}

// What a user may not read of the teardown says nothing about volumes, and makes no finding.
func TestTeardownThatWasNotSeenLeavesVolumesAlone(t *testing.T) {
	for _, forbidden := range []string{"alives", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "clusterrolebindings"} {
		report := readServing(t, tornDown(t, func(*alive.Alive, clustertest.Objects) {}), forbidden)
		got := report.Teardown
		if got == nil || len(got.Unseen) == 0 || len(got.Findings) > 0 || strings.Contains(strings.Join(report.Incomplete, "\n"), forbidden) {
			t.Errorf("without %s: %+v, %q", forbidden, got, report.Incomplete)
		}
	}
}

// A runner whose Lease may not be read is not one that nobody has seen.
func TestUnreadLeaseOfRunnerIsNoFinding(t *testing.T) {
	got := readServing(t, tornDown(t, func(*alive.Alive, clustertest.Objects) {}), "leases").Teardown
	if got == nil || len(got.Findings) > 0 || !strings.Contains(strings.Join(got.Unseen, ""), "no right to list leases") {
		t.Errorf("%+v", got)
	}
}
