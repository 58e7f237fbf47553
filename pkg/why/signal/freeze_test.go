package signal_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

func TestFreezeRefusesAbsentObject(t *testing.T) {
	claims := cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), Kind: "PersistentVolumeClaim",
		Namespace: "shop", Name: "data"}
	report := newWorld(t).freeze().explain(claims)
	if report.Verdict != blocker.Gone || len(report.Blockers) != 1 || report.Blockers[0].Reason != blocker.FreezeRefuses ||
		!strings.Contains(text(report.Blockers), "# exeunt teardown remove") {
		t.Errorf("%+v", report)
	}
	if report := newWorld(t).explain(claims); len(report.Blockers) > 0 {
		t.Errorf("without a freeze: %+v", report)
	}
	maps := cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap", Namespace: "shop", Name: "data"}
	if report := newWorld(t).freeze().explain(maps); len(report.Blockers) > 0 {
		t.Errorf("a kind that is not frozen: %+v", report)
	}
	unbound := newWorld(t).freeze()
	delete(unbound.Objects, "validatingadmissionpolicybindings")
	if report := unbound.explain(claims); len(report.Blockers) > 0 {
		t.Errorf("without a binding: %+v", report)
	}
}

func TestFreezeAdmitsPodsOfLaterWaves(t *testing.T) {
	w := newWorld(t).freeze()
	policy := w.Objects["validatingadmissionpolicies"][0].(*unstructured.Unstructured)
	policy.Object["spec"] = map[string]any{"variables": []any{map[string]any{"name": "running", "expression": `["rook"]`}}}
	for namespace, refused := range map[string]bool{"rook": false, "shop": true} {
		report := w.explain(cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespace: namespace, Name: "p"})
		if (len(report.Blockers) > 0) != refused {
			t.Errorf("%s: %+v", namespace, report)
		}
	}
}

// What is refused has no object: its owner reports the refusal.
func TestOwnerWhosePodsAreRefused(t *testing.T) {
	const message = `create Pod db-0 in StatefulSet db failed: pods "db-0" is forbidden: ValidatingAdmissionPolicy 'exeunt-teardown-freeze' with binding ` +
		`'exeunt-teardown-freeze' denied request: the cluster is torn down`
	set := &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"}}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Type: "Warning", Reason: "FailedCreate",
		InvolvedObject: corev1.ObjectReference{Kind: "StatefulSet", UID: "db"}, Message: message, LastTimestamp: metav1.Now()}
	ref := cluster.Ref{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, Kind: "StatefulSet",
		Namespace: "shop", Name: "db"}
	w := newWorld(t).add("statefulsets", set).add("events", event)
	if report := w.explain(ref); len(report.Blockers) > 0 {
		t.Errorf("without the freeze: %+v", report)
	}
	report := w.freeze().explain(ref)
	if report.Verdict != blocker.None || len(report.Blockers) != 1 || report.Blockers[0].Reason != blocker.FreezeRefuses {
		t.Fatalf("%+v", report)
	}
	for _, want := range []string{"FailedCreate, last at", "# exeunt teardown remove", "exeunt why alives.lifecycle.exeunt.io/cluster"} {
		if all := text(report.Blockers); !strings.Contains(all, want) {
			t.Errorf("%q is not said in %s", want, all)
		}
	}
}

func TestNamesAreThoseOfRunner(t *testing.T) {
	if runner.Namespace != teardown.Namespace || runner.LeaseName != teardown.LeaseName || runner.FreezeName != teardown.FreezeName {
		t.Error("the runner has other names")
	}
}
