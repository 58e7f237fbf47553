package volume

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// withFinalizers returns a change that sets the finalizers.
func withFinalizers(names ...string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) { v.Finalizers = names }
}

// A webhook chooses the code of its denial. The volume has one event, however often the write is repeated.
func TestRefusedWriteOfVolumeIsReported(t *testing.T) {
	const inTree, protected = "kubernetes.io/pv-controller", "kubernetes.io/pv-protection"
	phase := func(phase v1.PersistentVolumePhase) func(*v1.PersistentVolume) {
		return func(v *v1.PersistentVolume) { v.Status.Phase = phase }
	}
	unclaimed := func(v *v1.PersistentVolume) { v.Spec.ClaimRef = nil }
	deleting := func(v *v1.PersistentVolume) { v.DeletionTimestamp = ptr.To(metav1.Now()) }
	reconcile := func(s *fixture) func(context.Context, string) error { return s.Reconcile }
	protect := func(s *fixture) func(context.Context, string) error { return s.Protect }
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		pass   func(*fixture) func(context.Context, string) error
		write  string
	}{
		"in-tree finalizer": {releasedVolume(v1.PersistentVolumeReclaimDelete), reconcile, "Writing the finalizers and annotations that say who deletes the disk"},
		"Released": {releasedVolume(v1.PersistentVolumeReclaimDelete, withFinalizers(inTree, protected),
			phase(v1.VolumeBound)), reconcile, "Writing the phase Released"},
		"Available": {releasedVolume(v1.PersistentVolumeReclaimRetain, withFinalizers(protected),
			phase(v1.VolumePending), unclaimed), reconcile, "Writing the phase Available"},
		"protection": {releasedVolume(v1.PersistentVolumeReclaimRetain), protect, "Adding the finalizer kubernetes.io/pv-protection"},
		"end of protection": {releasedVolume(v1.PersistentVolumeReclaimRetain, withFinalizers(protected), deleting), protect,
			"Removing the finalizer kubernetes.io/pv-protection"},
	} {
		for _, code := range []int32{http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
			http.StatusUnprocessableEntity} {
			t.Run(fmt.Sprintf("%s, %d", name, code), func(t *testing.T) {
				s := newFixture(t, tc.volume)
				s.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumes",
					func(clienttesting.Action) (bool, runtime.Object, error) {
						return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code,
							Message: `admission webhook "w" denied the request`}}
					})
				for range 3 {
					if err := tc.pass(s)(t.Context(), "v"); err == nil {
						t.Fatal("the refusal is no error")
					}
				}
				want := []string{"Warning WriteRefused: " + tc.write + ` failed, and is repeated with backoff: patch volume v: admission webhook "w" denied the request`}
				if !slices.Equal(s.events.events, want) {
					t.Errorf("events %q, want %q", s.events.events, want)
				}
			})
		}
	}
}
