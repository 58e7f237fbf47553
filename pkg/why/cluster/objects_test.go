package cluster_test

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// A cluster has hundreds of thousands of objects. What tells of a deletion is kept.
func TestMetadataOfLivingObjectsIsSmall(t *testing.T) {
	r := clustertest.NewReader(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const rest = `"managedFields": [{"manager": "m"}], "annotations": {"a": "b"}, "labels": {"c": "d"}, "finalizers": ["f"]`
		fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "lives", %s}}, {"metadata": {"name": "deleted", "deletionTimestamp": "2026-01-02T03:04:05Z", %s}}]}`, rest, rest)
	})
	objects, seen := r.Metadata(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "")
	if !seen || len(objects) != 2 {
		t.Fatalf("objects %+v, seen %t", objects, seen)
	}
	for i, kept := range []int{0, 1} {
		o := &objects[i]
		if len(o.ManagedFields) != kept || len(o.Annotations) != kept || len(o.Labels) != kept || len(o.Finalizers) != 1 {
			t.Errorf("of %s is kept %+v", o.Name, o.ObjectMeta)
		}
	}
}

// All but what tells the use of claims is dropped; a pod that is being deleted is explained itself.
func TestPodsWithClaims(t *testing.T) {
	pod := func(name string, change func(*corev1.Pod), volumes ...corev1.VolumeSource) metav1.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid",
			Annotations:     map[string]string{"large": "text"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "j"}}},
			Spec:   corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Message: "text"}}
		for i, source := range append(volumes, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint(i), VolumeSource: source})
		}
		change(p)
		return p
	}
	asIs := func(*corev1.Pod) {}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	r := clustertest.NewReader(t, clustertest.Objects{"pods": {
		pod("without", asIs), pod("claim", asIs, claim),
		pod("ephemeral", asIs, corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
		pod("mirror", func(p *corev1.Pod) { p.Annotations[corev1.MirrorPodAnnotationKey] = "hash" }, claim),
		pod("deleted", func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }, claim),
		pod("elsewhere", func(p *corev1.Pod) { p.Namespace = "other" }, claim),
	}}.ServeHTTP)
	pods, seen := cluster.PodsWithClaims(t.Context(), r, "ns")
	want := []string{"claim", "ephemeral", "mirror", "deleted"}
	if !seen || len(pods) != len(want) {
		t.Fatalf("%d pods, seen %t, want %v", len(pods), seen, want)
	}
	for i, name := range want {
		p := &pods[i]
		whole := len(p.Spec.Containers) == 1 && p.Annotations["large"] != "" && p.Status.Message != "" && len(p.Spec.Volumes) == 2
		small := len(p.Spec.Containers) == 0 && p.Annotations["large"] == "" && p.Status.Message == "" && len(p.Spec.Volumes) == 1
		if p.Name != name || name == "deleted" && !whole || name != "deleted" && !small ||
			p.UID == "" || p.Spec.NodeName == "" || p.Status.Phase == "" || len(p.OwnerReferences) != 1 ||
			(p.Annotations[corev1.MirrorPodAnnotationKey] != "") != (name == "mirror") {
			t.Errorf("%s is kept as %+v", name, p)
		}
	}
}
