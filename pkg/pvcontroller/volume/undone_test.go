package volume

import (
	"context"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// A mutating webhook undoes every write of the volume and answers 200. No event follows, so the pass is an error, and is
// repeated with backoff.
func TestUndoneWriteOfVolumeIsAnError(t *testing.T) {
	protected := func(v *v1.PersistentVolume) {
		v.Finalizers = []string{"kubernetes.io/pv-controller", "kubernetes.io/pv-protection"}
	}
	unprotected := func(v *v1.PersistentVolume) { v.Finalizers = []string{"kubernetes.io/pv-controller"} }
	for name, tc := range map[string]struct {
		volume    *v1.PersistentVolume
		reconcile func(*fixture) func(context.Context, string) error
	}{
		"in-tree finalizer": {releasedVolume(v1.PersistentVolumeReclaimDelete), func(s *fixture) func(context.Context, string) error { return s.Reconcile }},
		"phase": {releasedVolume(v1.PersistentVolumeReclaimDelete, protected,
			func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeBound }),
			func(s *fixture) func(context.Context, string) error { return s.Reconcile }},
		"protection": {releasedVolume(v1.PersistentVolumeReclaimDelete, unprotected), func(s *fixture) func(context.Context, string) error { return s.Protect }},
	} {
		t.Run(name, func(t *testing.T) {
			s, writes := newFixture(t, tc.volume), 0
			s.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumes",
				func(clienttesting.Action) (bool, runtime.Object, error) {
					writes++
					return true, tc.volume.DeepCopy(), nil
				})
			for range 10 {
				if err := tc.reconcile(s)(t.Context(), "v"); !errors.Is(err, controller.ErrTooManySteps) {
					t.Fatalf("error %v", err)
				}
			}
			if writes > 3 {
				t.Errorf("%d writes without a pause", writes)
			}
		})
	}
}
