package runner

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// Of an object that is gone "exeunt why" says that the freeze refuses its creation: that is no reason why a volume remains.
func TestObjectThatIsGoneExplainsNothing(t *testing.T) {
	frozen := func(kind string) metav1.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
			"metadata": map[string]any{"name": FreezeName}}}
	}
	volume := &v1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "v"}, Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound}}
	objects := clustertest.Objects{"persistentvolumes": {volume},
		"validatingadmissionpolicies":       {frozen("ValidatingAdmissionPolicy")},
		"validatingadmissionpolicybindings": {frozen("ValidatingAdmissionPolicyBinding")}}
	r := &Runner{Config: Config{Clients: &Clients{Objects: fake.NewClientset()}}}
	explorer := why.NewExplorer(clustertest.NewReader(t, objects.ServeHTTP), cluster.Commands{}, false)
	item := &teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolume", Name: "v", UID: "v"}, Claim: "shop/data"}
	if got := r.explainOne(t.Context(), explorer, item); len(got.blockers) > 0 {
		t.Errorf("%+v", got.blockers)
	}
}

// A namespace may have thousands of pods.
func TestPodsAreListedOnceForAllExplanations(t *testing.T) {
	var lists atomic.Int32
	objects := clustertest.Objects{"persistentvolumes": {}, "pods": {}}
	clients := fake.NewClientset()
	r := &Runner{Config: Config{Clients: &Clients{Objects: clients}}}
	explorer := why.NewExplorer(clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/pods") {
			lists.Add(1)
		}
		objects.ServeHTTP(w, request)
	}), cluster.Commands{}, false)
	for _, name := range []string{"a", "b", "c"} {
		r.explainOne(t.Context(), explorer, &teardown.Item{Kind: teardown.Volume, Claim: "shop/" + name,
			Object: teardown.Object{Kind: "PersistentVolume", Name: name, UID: name}})
	}
	if got := lists.Load(); got != 1 || len(clients.Actions()) > 0 {
		t.Errorf("three volumes take %d lists of pods, and %v", got, clients.Actions())
	}
}

func TestPodThatHoldsKeptVolumeIsNamed(t *testing.T) { // 02, 13
	volume := &v1.PersistentVolume{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "v"}, Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound}}
	pod := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "web", Finalizers: []string{"example.com/audit"},
		DeletionTimestamp: &metav1.Time{Time: time.Unix(1e9, 0)}}}
	pod.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	r := &Runner{Config: Config{Clients: &Clients{Objects: fake.NewClientset(pod)}}}
	objects := clustertest.Objects{"persistentvolumes": {volume}, "pods": {pod}}
	explorer := why.NewExplorer(clustertest.NewReader(t, objects.ServeHTTP), cluster.Commands{}, false)
	item := teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolume", Name: "v", UID: "v"},
		Claim: "shop/data", Plan: teardown.PlanKeep, Fate: teardown.Kept, InUse: true}
	if len(remainingOf([]teardown.Item{item})) != 1 {
		t.Error("a kept volume in use is not awaited")
	}
	got := r.explainOne(t.Context(), explorer, &item)
	if len(got.blockers) == 0 || got.blockers[0].Object.Name != "web" || !slices.Contains(got.objects, "web") {
		t.Fatalf("%+v does not name the pod", got)
	}
	document := &teardown.Document{Items: []teardown.Item{item}}
	if Stuck(document) {
		t.Error("stuck without evidence")
	}
	document.Items[0].Blockers = []blocker.Blocker{{Verdict: blocker.Stuck}}
	if !Stuck(document) {
		t.Error("what holds the kept volume is stuck by evidence")
	}
}

// refusesDeletion serves the volume v and the pod, whose deletion a dead webhook refuses.
func refusesDeletion(pod *v1.Pod) http.HandlerFunc {
	objects := clustertest.Objects{"pods": {pod}, "persistentvolumes": {&v1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "v"}}}}
	return func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodDelete || !strings.HasSuffix(request.URL.Path, "/pods/"+pod.Name) {
			objects.ServeHTTP(w, request)
			return
		}
		status := apierrors.NewInternalError(errors.New(`failed calling webhook "gone"`)).Status()
		status.APIVersion, status.Kind = "v1", "Status"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_ = json.NewEncoder(w).Encode(status)
	}
}

// A living pod is deleted before the claim, and somebody refuses that, or the kubelet makes it again.
func TestLivingPodThatHoldsClaimIsNamed(t *testing.T) { // 22, 67
	pod := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	pod.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	mirror := pod.DeepCopy()
	mirror.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"}
	volume := teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolume", Name: "v", UID: "v"},
		Claim: "shop/data", Plan: teardown.PlanDelete, Fate: teardown.Remains}
	kept, requested := volume, volume
	kept.Plan, kept.Fate, kept.InUse = teardown.PlanKeep, teardown.Kept, true
	requested.Object, requested.Claim = teardown.Object{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}, ""
	for name, tc := range map[string]struct {
		item    teardown.Item
		pod     *v1.Pod
		reason  blocker.Reason
		verdict blocker.Verdict
	}{
		"of a volume":    {volume, pod, blocker.AdmissionUnreachable, blocker.Unknown},
		"of a kept one":  {kept, pod, blocker.AdmissionUnreachable, blocker.Unknown},
		"of a request":   {requested, pod, blocker.AdmissionUnreachable, blocker.Unknown},
		"a mirror pod":   {volume, mirror, blocker.PodUsesClaim, blocker.Stuck},
		"kept, a mirror": {kept, mirror, blocker.PodUsesClaim, blocker.Stuck},
	} {
		t.Run(name, func(t *testing.T) {
			reader := clustertest.NewReader(t, refusesDeletion(tc.pod))
			r := &Runner{Config: Config{Clients: &Clients{Objects: fake.NewClientset(tc.pod)}}}
			got := r.explainOne(t.Context(), why.NewExplorer(reader, cluster.Commands{}, false), &tc.item)
			if len(got.blockers) != 1 || got.blockers[0].Reason != tc.reason || got.blockers[0].Verdict != tc.verdict ||
				got.blockers[0].Object.Name != "web" {
				t.Errorf("%+v", got.blockers)
			}
		})
	}
}

// Each question is a request, for each of 20 items.
func TestFewPodsOfClaimAreAskedAbout(t *testing.T) {
	item := teardown.Item{Object: teardown.Object{Kind: "PersistentVolume", Name: "v"}, Claim: "shop/data"}
	if got := deletedFor(&item, make([]v1.Pod, 40)); len(got) != 4 || got[0].Kind != "PersistentVolumeClaim" {
		t.Errorf("%v", got)
	}
}
