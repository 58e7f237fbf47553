package signal_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

const bucketFinalizer = "buckets.example.com/teardown"

// world is a cluster.
type world struct {
	clustertest.Objects
	t *testing.T
}

// newWorld returns a cluster with namespaces, and the objects.
func newWorld(t *testing.T) world {
	w := world{clustertest.Objects{}, t}
	w.add("namespaces", &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "id"}})
	w.add("namespaces", &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: "buckets", UID: "b"}})
	w.add("customresourcedefinitions", object("apiextensions.k8s.io/v1", "CustomResourceDefinition", alive.CRD))
	return w
}

func (w world) add(resource string, objects ...metav1.Object) world {
	w.Objects[resource] = append(w.Objects[resource], objects...)
	return w
}

// object returns an object without fields of its own.
func object(version, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind,
		"metadata": map[string]any{"name": name, "uid": name}}}
}

// served are the kinds of the cluster.
var served = map[string][]metav1.APIResource{
	"v1": {{Name: "persistentvolumes", Kind: "PersistentVolume"}, {Name: "services", Namespaced: true, Kind: "Service"},
		{Name: "persistentvolumeclaims", Namespaced: true, Kind: "PersistentVolumeClaim"}},
	"lifecycle.exeunt.io/v1alpha1": {{Name: "alives", Kind: "Alive"}},
	"apps/v1":                      {{Name: "statefulsets", Namespaced: true, Kind: "StatefulSet"}},
}

func (w world) explain(ref cluster.Ref) blocker.Report {
	w.t.Helper()
	serve := clustertest.Discovery{Served: served, Next: http.HandlerFunc(w.ServeHTTP)}
	e := why.NewExplorer(clustertest.NewReader(w.t, serve.ServeHTTP), cluster.Commands{}, false)
	report, err := e.Explain(w.t.Context(), ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

func (w world) explainAlive() blocker.Report {
	w.t.Helper()
	return w.explain(cluster.Ref{Resource: alive.Resource, Kind: alive.Kind, Name: alive.Name})
}

// freeze adds the freeze.
func (w world) freeze() world {
	return w.add("validatingadmissionpolicies", object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", teardown.FreezeName)).
		add("validatingadmissionpolicybindings", object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", teardown.FreezeName))
}

// lead adds the Lease of the runner, renewed the given time ago.
func (w world) lead(ago time.Duration) world {
	return w.add("leases", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: teardown.Namespace, Name: teardown.LeaseName},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("laptop_1"), LeaseDurationSeconds: ptr.To[int32](15),
			RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-ago)))}})
}

// workload adds a Deployment in the namespace of the participant.
func (w world) workload(wanted, ready int32) world {
	return w.add("deployments", &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "buckets", Name: "bucket-operator"},
		Spec: appsv1.DeploymentSpec{Replicas: &wanted}, Status: appsv1.DeploymentStatus{ReadyReplicas: ready}})
}

// failing adds an event about Alive.
func (w world) event(kind, sender string, ago time.Duration) world {
	return w.add("events", &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, Type: kind,
		InvolvedObject: corev1.ObjectReference{Kind: alive.Kind, Name: alive.Name, UID: "alive"}, Reason: "BucketFailed",
		Message: "the bucket is not empty", Source: corev1.EventSource{Component: sender}, LastTimestamp: metav1.NewTime(time.Now().Add(-ago))})
}

// torn returns an Alive whose teardown has begun a minute ago, with one participant, and adds it.
func (w world) torn(change func(*alive.Alive)) world {
	w.t.Helper()
	begun := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
	a := alive.New()
	a.UID, a.DeletionTimestamp = "alive", &begun
	a.Finalizers = append(a.Finalizers, bucketFinalizer)
	a.Annotations = map[string]string{bucketFinalizer: "buckets: buckets of the account dev"}
	a.Spec = alive.Spec{Protected: ptr.To(false), Confirm: "id", ConfirmedAt: &begun}
	a.Status = alive.Status{Phase: alive.TearingDown, Reason: "Remaining", Message: "what was deleted is awaited", StartedAt: &begun,
		Conditions: []metav1.Condition{{Type: alive.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Prepared"}}}
	if change != nil {
		change(a)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.add("alives", &unstructured.Unstructured{Object: content})
}

// living makes the Alive one that nobody has deleted.
func living(protected bool) func(*alive.Alive) {
	return func(a *alive.Alive) {
		a.DeletionTimestamp, a.Spec.Protected, a.Status = nil, &protected, alive.Status{}
	}
}

// text returns all evidence and next steps.
func text(blockers []blocker.Blocker) string {
	var all strings.Builder
	for _, b := range blockers {
		for _, fact := range b.Evidence {
			all.WriteString(fact.Text + "\n")
		}
		all.WriteString(b.Holder + "\n" + b.Next + "\n" + text(b.Blockers))
	}
	return all.String()
}

// stopped makes the status say that the teardown is stopped.
func stopped(reason string) func(*alive.Alive) {
	return func(a *alive.Alive) {
		a.Status.Phase, a.Status.Reason, a.Status.Message = alive.Stopped, reason, "the message"
	}
}

// explanations are Alive, and what is said about it.
var explanations = map[string]struct {
	build   func(w world) world
	reasons []blocker.Reason // of the runner and of the participant
	verdict blocker.Verdict
	says    []string
}{
	"protected": {func(w world) world { return w.torn(living(true)) }, []blocker.Reason{blocker.ClusterProtected}, blocker.None,
		[]string{"spec.protected is true", "participant " + bucketFinalizer + " of namespace buckets cleans up buckets of the account dev"}},
	"a freeze is left behind": {func(w world) world { return w.torn(living(true)).freeze() }, []blocker.Reason{blocker.ClusterProtected}, blocker.None,
		[]string{"the freeze exeunt-teardown-freeze refuses new claims", "# exeunt teardown remove"}},
	"armed": {func(w world) world { return w.torn(living(false)) }, []blocker.Reason{blocker.TeardownArmed}, blocker.None,
		[]string{"# exeunt teardown --confirm=id", "# exeunt teardown --abort", "spec permits the teardown until 20"}},
	"a runner leads": {func(w world) world { return w.torn(nil).lead(0).workload(1, 1) },
		[]blocker.Reason{blocker.TeardownRuns, blocker.ControllerActs}, blocker.Waiting,
		[]string{"status: phase TearingDown, reason Remaining: what was deleted is awaited", "condition Started is True", "laptop_1",
			"1 workloads want 1 pods, of which 1 are ready"}},
	"no runner leads": {func(w world) world { return w.torn(nil).workload(1, 1) },
		[]blocker.Reason{blocker.ControllerUnseen, blocker.ControllerActs}, blocker.Unknown, []string{"# exeunt teardown --confirm=id"}},
	"#56 protected again": {func(w world) world {
		return w.torn(func(a *alive.Alive) { a.Spec.Protected = ptr.To(true) }).lead(0)
	}, []blocker.Reason{blocker.TeardownStopped, blocker.TeardownStopped}, blocker.Stuck,
		[]string{"the teardown is stopped: spec.protected is true", "# exeunt teardown --abort", "# exeunt teardown remove", "--show-managed-fields"}},
	"#52 expired": {func(w world) world {
		return w.torn(func(a *alive.Alive) { a.Spec.Timeout = &metav1.Duration{Duration: time.Second} }).lead(0)
	}, []blocker.Reason{blocker.TeardownStopped, blocker.TeardownStopped}, blocker.Stuck, []string{"the permission ended at 20"}},
	"#64 paused": {func(w world) world { return w.torn(stopped(alive.ReasonPaused)).lead(0).workload(1, 1) },
		[]blocker.Reason{blocker.TeardownStopped, blocker.ControllerActs}, blocker.Stuck, []string{"the teardown is stopped: Paused, the message"}},
	"an old stop": {func(w world) world { return w.torn(stopped(alive.ReasonExpired)).lead(0).workload(1, 1) },
		[]blocker.Reason{blocker.TeardownRuns, blocker.ControllerActs}, blocker.Waiting, nil},
	"not started yet": {func(w world) world {
		return w.torn(func(a *alive.Alive) { a.Status.Conditions = nil }).lead(0)
	}, []blocker.Reason{blocker.TeardownRuns, blocker.TeardownRuns}, blocker.Waiting,
		[]string{"a participant cleans up once the teardown is started"}},
	"#55 participant is switched off": {func(w world) world { return w.torn(nil).lead(0).workload(0, 0) },
		[]blocker.Reason{blocker.TeardownRuns, blocker.ControllerGone}, blocker.Stuck,
		[]string{"# last resort, buckets of the account dev stays behind", bucketFinalizer + `"`}},
	"#55 namespace of the participant is gone": {func(w world) world {
		return w.torn(func(a *alive.Alive) { a.Annotations[bucketFinalizer] = "away: buckets" }).lead(0)
	}, []blocker.Reason{blocker.TeardownRuns, blocker.ControllerGone}, blocker.Stuck, []string{"there is no namespace away"}},
	"#55 participant fails": {func(w world) world {
		return w.torn(nil).lead(0).workload(1, 1).event("Warning", "bucket-operator", time.Second)
	},
		[]blocker.Reason{blocker.TeardownRuns, blocker.ControllerFails}, blocker.Stuck, []string{"BucketFailed of bucket-operator"}},
	"participant failed before": {func(w world) world {
		return w.torn(nil).lead(0).workload(1, 1).event("Warning", "bucket-operator", time.Hour)
	},
		[]blocker.Reason{blocker.TeardownRuns, blocker.ControllerActs}, blocker.Waiting, nil},
	"warning of the runner": {func(w world) world { return w.torn(nil).lead(0).workload(1, 1).event("Warning", "exeunt-teardown", 0) },
		[]blocker.Reason{blocker.TeardownRuns, blocker.ControllerActs}, blocker.Waiting, nil},
	"participant is unseen": {func(w world) world { return w.torn(nil).lead(0) },
		[]blocker.Reason{blocker.TeardownRuns, blocker.ControllerUnseen}, blocker.Unknown, nil},
	"participant without an annotation": {func(w world) world {
		return w.torn(func(a *alive.Alive) { a.Annotations = nil }).lead(0)
	}, []blocker.Reason{blocker.TeardownRuns, blocker.UnknownFinalizer}, blocker.Unknown, nil},
	"foreground deletion": {func(w world) world {
		return w.torn(func(a *alive.Alive) { a.Finalizers[1] = metav1.FinalizerDeleteDependents }).lead(0)
	}, []blocker.Reason{blocker.TeardownRuns, blocker.ControllerUnseen}, blocker.Unknown, nil},
}

func TestAliveIsExplained(t *testing.T) {
	for name, tc := range explanations {
		t.Run(name, func(t *testing.T) {
			report := tc.build(newWorld(t)).explainAlive()
			var reasons []blocker.Reason
			for _, b := range report.Blockers {
				reasons = append(reasons, b.Reason)
			}
			if len(reasons) != len(tc.reasons) || report.Verdict != tc.verdict {
				t.Fatalf("%v %v, want %v %v: %s", report.Verdict, reasons, tc.verdict, tc.reasons, text(report.Blockers))
			}
			for i := range reasons {
				if reasons[i] != tc.reasons[i] {
					t.Errorf("reason %d is %v, want %v", i, reasons[i], tc.reasons[i])
				}
			}
			for _, want := range tc.says {
				if all := text(report.Blockers); !strings.Contains(all, want) {
					t.Errorf("%q is not said in %s", want, all)
				}
			}
			if deadline := report.Deadline; (deadline != nil) != (report.Verdict != blocker.None) {
				t.Errorf("deadline: %+v", deadline)
			}
		})
	}
}

// #54: a protected Alive that goes with its kind.
func TestDeletedDefinitionStopsTeardown(t *testing.T) {
	w := newWorld(t).torn(nil).lead(0)
	definition := w.Objects["customresourcedefinitions"][0].(*unstructured.Unstructured)
	now := metav1.Now()
	definition.SetDeletionTimestamp(&now)
	report := w.explainAlive()
	if report.Verdict != blocker.Stuck || report.Blockers[0].Reason != blocker.TeardownStopped ||
		!strings.Contains(text(report.Blockers), "the CRD of Alive is being deleted, which is no request for a teardown") {
		t.Errorf("%v %s", report.Verdict, text(report.Blockers))
	}
}

// withRemaining is a teardown with objects that are left.
func withRemaining(t *testing.T) world {
	deleted := metav1.NewTime(time.Now().Add(-time.Minute))
	service := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "s", DeletionTimestamp: &deleted, Finalizers: []string{"service.kubernetes.io/load-balancer-cleanup"}}}
	volume := &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{
		Name: "pv", UID: "v"}, Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "c"}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	claim := &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "data", UID: "c", DeletionTimestamp: &deleted, Finalizers: []string{"kubernetes.io/pvc-protection"}}}
	later := &corev1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{
		Name: "later", UID: "l"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	return newWorld(t).lead(0).workload(1, 1).add("services", service).add("persistentvolumes", volume, later).
		add("persistentvolumeclaims", claim).torn(func(a *alive.Alive) {
		a.Status.RemainingCount = 7
		a.Status.Remaining = []alive.Remaining{
			{Object: alive.Object{Kind: "Service", Namespace: "shop", Name: "web", UID: "s"}, ExternalID: "10.0.0.1"},
			{Object: alive.Object{Kind: "PersistentVolume", Name: "pv", UID: "v"}},
			{Object: alive.Object{Kind: "PersistentVolume", Name: "later", UID: "l"}},
			{Object: alive.Object{Kind: "PersistentVolume", Name: "gone", UID: "g"}},
			{Object: alive.Object{Kind: "Alive", Namespace: "buckets", Name: "cluster"}, ExternalID: bucketFinalizer},
			{Object: alive.Object{Kind: "Strange", Name: "x"}},
			{Object: alive.Object{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "asked", UID: "a"}, ExternalID: "pvc-a", Reason: "OutcomeUnknown"},
		}
	})
}

func TestRemainingObjectsAreExplained(t *testing.T) {
	report := withRemaining(t).explainAlive()
	var got []string
	for _, b := range report.Blockers[0].Blockers {
		below := ""
		if len(b.Blockers) > 0 {
			below = " below: " + b.Blockers[0].Finalizer
		}
		got = append(got, b.Object.String()+" "+b.Verdict.String()+below)
	}
	want := []string{"Service shop/web unknown below: service.kubernetes.io/load-balancer-cleanup",
		"PersistentVolume pv unknown below: kubernetes.io/pvc-protection", "PersistentVolume later waiting", "Strange x unknown",
		"PersistentVolumeClaim shop/asked unknown"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
	for _, want := range []string{"status.remainingCount is 7", "Service 1, PersistentVolume 3", "the external resource is 10.0.0.1",
		"PersistentVolume later is not being deleted yet", "may be in storage as pvc-a", "exeunt journal list", "status.remaining says OutcomeUnknown", "exeunt why persistentvolumeclaim/data -n shop"} {
		if all := text(report.Blockers); !strings.Contains(all, want) {
			t.Errorf("%q is not said in %s", want, all)
		}
	}
}

func TestUnreadRecordIsNotTakenForNone(t *testing.T) {
	w := newWorld(t).freeze()
	serve := clustertest.Discovery{Served: served, Next: http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/configmaps/"+teardown.ReportName) {
			writer.WriteHeader(http.StatusForbidden)
			_, _ = writer.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
			return
		}
		w.ServeHTTP(writer, request)
	})}
	report, err := why.NewExplorer(clustertest.NewReader(t, serve.ServeHTTP), cluster.Commands{}, false).Explain(t.Context(),
		cluster.Ref{Resource: alive.Resource, Kind: alive.Kind, Name: alive.Name})
	all := text(report.Blockers)
	if err != nil || !strings.Contains(all, "could not be read") || strings.Contains(all, "there is no record") {
		t.Errorf("error %v: %s", err, all)
	}
}

func TestRecordSaysHowTeardownEnded(t *testing.T) {
	record := func(phase string) *corev1.ConfigMap {
		return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: teardown.Namespace, Name: teardown.ReportName, Annotations: map[string]string{teardown.PhaseAnnotation: phase}},
			Data: map[string]string{teardown.DocumentKey: `{"totals":{"Volume":{"delete":2,"keep":1,"gone":2}}}`}}
	}
	for name, tc := range map[string]struct {
		world world
		says  []string // nothing is said without any
	}{
		"never torn down": {newWorld(t), nil},
		"complete":        {newWorld(t).add("configmaps", record("Complete")).freeze(), []string{"says Complete: everything to delete was gone", "Volume: 2 gone, 1 kept, 0 remain, 0 unknown", "# exeunt teardown remove"}},
		"#57 cut short":   {newWorld(t).add("configmaps", record("TearingDown")), []string{`says "TearingDown", and not Complete: what is left is not known`}},
		"#57 no record":   {newWorld(t).freeze(), []string{"there is no record of the teardown"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.world.t = t
			report := tc.world.explainAlive()
			if report.Verdict != blocker.Gone || (len(report.Blockers) > 0) != (len(tc.says) > 0) {
				t.Fatalf("%+v", report)
			}
			for _, want := range tc.says {
				if all := text(report.Blockers); report.Blockers[0].Reason != blocker.TeardownEnded || !strings.Contains(all, want) {
					t.Errorf("%v, %q is not said in %s", report.Blockers[0].Reason, want, all)
				}
			}
		})
	}
}

// An annotation of the teardown's Alive is no deadline of the teardown.
func TestDeadlineOfTeardownIsThatOfConfirmation(t *testing.T) {
	report := newWorld(t).torn(func(a *alive.Alive) {
		begun := a.DeletionTimestamp.Time
		a.Annotations[deadline.Annotation] = deadline.Window{Start: begun, End: begun.Add(time.Second)}.String()
	}).explainAlive()
	if report.Deadline == nil || report.Deadline.Key != "spec.confirmedAt and spec.timeout" {
		t.Errorf("deadline %+v", report.Deadline)
	}
}
