package why

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

const guestFinalizer = "vm.example/guest"

var machines = schema.GroupVersionResource{Group: "vm.example", Version: "v1", Resource: "machines"}

// newMachine returns a custom resource that was deleted a minute ago: with the grace period in the fields, or with an
// annotation whose window is as long; 0 is a plain deletion.
func newMachine(field, annotation time.Duration, finalizers ...string) *unstructured.Unstructured {
	requested := time.Now().Add(-time.Minute).Truncate(time.Second)
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "vm.example/v1", "kind": "Machine"}}
	object.SetName("a")
	object.SetNamespace("n")
	object.SetUID("a")
	object.SetFinalizers(finalizers)
	object.SetDeletionTimestamp(ptr.To(metav1.NewTime(requested.Add(field))))
	object.SetDeletionGracePeriodSeconds(ptr.To(int64(field / time.Second)))
	if annotation > 0 {
		window := deadline.Window{Start: requested, End: requested.Add(annotation)}
		object.SetAnnotations(map[string]string{deadline.Annotation: window.String()})
	}
	return object
}

// serving returns an explorer of a cluster with the machine, whose definition exists unless it is aggregated, and whose
// user may not read some of it.
func serving(t *testing.T, machine *unstructured.Unstructured, aggregated bool, forbidden ...string) *Explorer {
	t.Helper()
	objects := clustertest.Objects{"machines": {machine}}
	if !aggregated {
		definition := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
			"kind": "CustomResourceDefinition"}}
		definition.SetName(machines.GroupResource().String())
		objects["customresourcedefinitions"] = []metav1.Object{definition}
	}
	served := clustertest.Discovery{Next: objects, Served: map[string][]metav1.APIResource{
		"vm.example/v1": {{Name: machines.Resource, Namespaced: true, Kind: "Machine"}}}}
	return NewExplorer(clustertest.NewReader(t, forbidding(served, forbidden...)), cluster.Commands{}, false)
}

func machineRef() cluster.Ref {
	return cluster.Ref{Resource: machines, Kind: "Machine", Namespace: "n", Name: "a"}
}

func TestDeadlineDecidesWhetherUnknownControllerIsExpected(t *testing.T) {
	for name, tc := range map[string]struct {
		machine *unstructured.Unstructured
		verdict blocker.Verdict
		reason  blocker.Reason
		source  blocker.Source // "" for no deadline
	}{
		"in grace by the fields":     {newMachine(5*time.Minute, 0, guestFinalizer), blocker.Waiting, blocker.GracePeriod, blocker.FromField},
		"in grace by the annotation": {newMachine(0, 5*time.Minute, guestFinalizer), blocker.Waiting, blocker.GracePeriod, blocker.FromAnnotation},
		"deadline of a second ago":   {newMachine(59*time.Second, 0, guestFinalizer), blocker.Unknown, blocker.UnknownFinalizer, blocker.FromField},
		"deadline passed":            {newMachine(0, 30*time.Second, guestFinalizer), blocker.Unknown, blocker.UnknownFinalizer, blocker.FromAnnotation},
		"deleted plain":              {newMachine(0, 0, guestFinalizer), blocker.Unknown, blocker.UnknownFinalizer, ""},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := serving(t, tc.machine, false).Explain(t.Context(), machineRef())
			if err != nil || report.Verdict != tc.verdict || len(report.Blockers) == 0 || report.Blockers[0].Reason != tc.reason {
				t.Fatalf("the report is %+v, %v; want %v %v", report, err, tc.verdict, tc.reason)
			}
			if (report.Deadline != nil) != (tc.source != "") || report.Deadline != nil && report.Deadline.Source != tc.source {
				t.Errorf("the deadline is %+v, want source %q", report.Deadline, tc.source)
			}
			first, _, _ := strings.Cut(report.Blockers[0].Next, "\n")
			if waits := strings.HasPrefix(first, "# wait until "); waits != (tc.verdict == blocker.Waiting) ||
				waits && !strings.Contains(first, report.Deadline.Time) {
				t.Errorf("the next step is %q", report.Blockers[0].Next)
			}
			if !strings.Contains(report.Blockers[0].Next, "let it clean up") {
				t.Errorf("the next step does not say what to do after the deadline: %q", report.Blockers[0].Next)
			}
		})
	}
}

func TestGracePeriodCostsNoRequest(t *testing.T) {
	requests := func(machine *unstructured.Unstructured) int {
		e := serving(t, machine, false)
		if _, err := e.Explain(t.Context(), machineRef()); err != nil {
			t.Fatal(err)
		}
		return e.Reader().Requests()
	}
	plain := requests(newMachine(0, 0, guestFinalizer))
	if got := requests(newMachine(5*time.Minute, 0, guestFinalizer)); got != plain {
		t.Errorf("in grace by the fields: %d requests, without %d", got, plain)
	}
	if got := requests(newMachine(0, 5*time.Minute, guestFinalizer)); got != plain {
		t.Errorf("in grace by the annotation: %d requests, without %d", got, plain)
	}
}

func TestForcedDeletionIsToldApart(t *testing.T) {
	machine := newMachine(0, 0, guestFinalizer)
	requested := machine.GetDeletionTimestamp().Time
	machine.SetAnnotations(map[string]string{deadline.Annotation: deadline.Window{Start: requested, End: requested}.String()})
	report, err := serving(t, machine, false).Explain(t.Context(), machineRef())
	want := blocker.Deadline{Requested: blocker.Time(requested), Time: blocker.Time(requested), Forced: true,
		Source: blocker.FromAnnotation}
	if err != nil || report.Verdict != blocker.Unknown || report.Deadline == nil || *report.Deadline != want {
		t.Errorf("the report is %+v, %v; want unknown, with the deadline %+v", report, err, want)
	}
}

func TestObjectLeftInGraceIsDeletedOnceMore(t *testing.T) {
	for name, tc := range map[string]struct {
		machine    *unstructured.Unstructured
		aggregated bool
		verdict    blocker.Verdict
		next       string
	}{
		"before the deadline":         {newMachine(5*time.Minute, 0), false, blocker.Stuck, "# kubectl delete machines.vm.example a -n n"},
		"after the deadline":          {newMachine(time.Second, 0), false, blocker.Stuck, "# kubectl delete machines.vm.example a -n n"},
		"served by an aggregated API": {newMachine(5*time.Minute, 0), true, blocker.Waiting, ""},
		"goes just now":               {newMachine(0, 5*time.Minute), false, blocker.Waiting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := serving(t, tc.machine, tc.aggregated).Explain(t.Context(), machineRef())
			if err != nil || report.Verdict != tc.verdict || (tc.next != "") != (len(report.Blockers) == 1) {
				t.Fatalf("the report is %+v, %v; want %v", report, err, tc.verdict)
			}
			if tc.next != "" && (report.Blockers[0].Reason != blocker.LeftInGrace ||
				!slices.Contains(strings.Split(report.Blockers[0].Next, "\n"), tc.next)) {
				t.Errorf("the blocker is %+v, want the next step %q", report.Blockers[0], tc.next)
			}
		})
	}
}

// The right to read the definition is missing: the object may be of an aggregated API server.
func TestLeftInGraceIsUnknownWithoutDefinition(t *testing.T) {
	e := serving(t, newMachine(5*time.Minute, 0), false, "customresourcedefinitions")
	report, err := e.Explain(t.Context(), machineRef())
	if err != nil || report.Verdict != blocker.Unknown || len(report.Incomplete) == 0 {
		t.Errorf("the report is %+v, %v; want unknown and incomplete", report, err)
	}
}

// listing returns an explorer of a cluster whose machines can be listed, too.
func listing(t *testing.T, objects clustertest.Objects) *Explorer {
	t.Helper()
	list := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/machines") {
			objects.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
			"metadata": map[string]any{}, "items": objects["machines"]})
	})
	served := clustertest.Discovery{Next: list, Served: map[string][]metav1.APIResource{
		"v1":            {{Name: "bindings", Namespaced: true, Kind: "Binding"}},
		"vm.example/v1": {{Name: machines.Resource, Namespaced: true, Kind: "Machine", Verbs: []string{"list", "delete"}}}}}
	return NewExplorer(clustertest.NewReader(t, served.ServeHTTP), cluster.Commands{}, false)
}

// The garbage collector and the API server read no deadlines.
func TestGarbageCollectorHasNoDeadline(t *testing.T) {
	machine := newMachine(5*time.Minute, 0, metav1.FinalizerDeleteDependents)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-controller-manager"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("node_1"), LeaseDurationSeconds: ptr.To[int32](3600),
			RenewTime: ptr.To(metav1.NowMicro())},
	}
	e := listing(t, clustertest.Objects{"machines": {machine}, "leases": {lease}})
	report, err := e.Explain(t.Context(), machineRef())
	if err != nil || len(report.Blockers) == 0 || report.Blockers[0].Reason != blocker.ControllerActs ||
		strings.Contains(report.Blockers[0].Next, "the deadline of") {
		t.Errorf("the report is %+v, %v; want ControllerActs without a deadline", report, err)
	}
}

// The definition waits for its object, which has a deadline of its own.
func TestDeadlineOfNestedObjectIsEvidence(t *testing.T) {
	machine := newMachine(0, 5*time.Minute, guestFinalizer)
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": map[string]any{
			"group": machines.Group, "scope": "Namespaced", "names": map[string]any{"plural": machines.Resource, "kind": "Machine"},
			"versions": []any{map[string]any{"name": machines.Version, "served": true, "storage": true}},
		}}}
	definition.SetName(machines.GroupResource().String())
	definition.SetUID("definition")
	definition.SetFinalizers([]string{"customresourcecleanup.apiextensions.k8s.io"})
	definition.SetDeletionTimestamp(ptr.To(metav1.Now()))
	objects := clustertest.Objects{"machines": {machine}, "customresourcedefinitions": {definition}}
	report, err := listing(t, objects).Explain(t.Context(),
		cluster.Ref{Resource: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
			Kind: "CustomResourceDefinition", Name: definition.GetName()})
	if err != nil || report.Deadline != nil || report.Verdict != blocker.Waiting {
		t.Fatalf("the report is %+v, %v; want waiting, without a deadline", report, err)
	}
	want := blocker.DeadlineOf(machine, true).Evidence()
	for root := range blocker.Roots(report.Blockers) {
		if root.Reason == blocker.GracePeriod && slices.Contains(root.Evidence, want) {
			return
		}
	}
	t.Errorf("the blockers are %+v, want GracePeriod with the evidence %v", report.Blockers, want)
}
