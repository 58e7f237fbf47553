package storage

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// jobPod returns a pod of a Job of its own that uses the claim data.
func jobPod(number int, deleted bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", number),
		UID: types.UID(fmt.Sprint("p", number)), OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job",
			Name: fmt.Sprint("j", number), UID: "job", Controller: ptr.To(true)}}}}
	pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodRunning
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	if deleted {
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now()))
	}
	return pod
}

// Hundreds of Jobs share a claim: a read of the owner of each pod would take minutes.
func TestOnlyFirstPodsOfClaimAreExplained(t *testing.T) {
	deletion := ptr.To(metav1.NewTime(time.Now()))
	object, err := toUnstructured("v1", "PersistentVolumeClaim", &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "data", Finalizers: []string{string(finalizer.ClaimProtection)}, DeletionTimestamp: deletion}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		living, deleted, blockers int
		verdict                   blocker.Verdict
		last                      string
	}{
		"few":        {maxUsers, maxUsers, 2 * maxUsers, blocker.Waiting, "spec.volumes of the pod names the claim"},
		"many":       {300, 0, maxUsers + 1, blocker.Waiting, "such as pod p10; 0 of these are being deleted"},
		"many go":    {0, 300, maxUsers + 1, blocker.Unknown, "such as pod p10; 290 of these are being deleted"},
		"one is new": {300, 1, maxUsers + 2, blocker.Waiting, "290 further pods names the claim"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := clustertest.Objects{}
			for i := range tc.living + tc.deleted {
				objects["pods"] = append(objects["pods"], jobPod(i, i >= tc.living))
			}
			var requests atomic.Int32
			served := clustertest.Discovery{Served: map[string][]metav1.APIResource{
				"batch/v1": {{Name: "jobs", Kind: "Job", Namespaced: true, Verbs: []string{"get"}}}}, Next: objects}
			e := explorer{reader: clustertest.NewReader(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				served.ServeHTTP(w, r)
			})}
			found := explainClaim(t.Context(), e, object)
			if len(found) != tc.blockers || blocker.Worst(found) != tc.verdict || requests.Load() > 20 {
				t.Fatalf("%d blockers, want %d; verdict %v, want %v; %d requests", len(found), tc.blockers, blocker.Worst(found),
					tc.verdict, requests.Load())
			}
			if last := found[len(found)-1].Evidence[0].Text; name != "one is new" && !strings.Contains(last, tc.last) {
				t.Errorf("the last evidence is %q, want %q", last, tc.last)
			}
		})
	}
}
