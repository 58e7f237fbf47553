package runner

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// requestedClaim returns a pending claim whose provisioner was asked for a volume.
func requestedClaim(labels map[string]string) *v1.PersistentVolumeClaim {
	claim := testClaim("data", false, nil)
	claim.Labels, claim.Spec.VolumeName, claim.Status.Phase = labels, "", v1.ClaimPending
	claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": "ebs"}
	return claim
}

// What the watches have shown to be quiet must be so in the lists at the end, or the teardown never completes.
func TestRecheckKnowsWhatTheSessionLearned(t *testing.T) {
	kept := requestedClaim(map[string]string{inventory.PreserveLabel: ""})
	gone, late := requestedClaim(nil), testVolume("data", v1.VolumeReleased)
	late.Spec.ClaimRef.UID = gone.UID
	for name, tc := range map[string]struct {
		listed []runtime.Object
		learn  func(s *session, at time.Time)
	}{
		"a kept request without answer": {[]runtime.Object{kept}, func(s *session, at time.Time) {
			s.inventory.Set(kept)
			s.inventory.Work(at)
		}},
		"an unknown that got its volume": {nil, func(s *session, at time.Time) {
			s.inventory.Set(gone)
			s.inventory.Work(at)
			s.inventory.Remove(gone)
			s.record.add(s.inventory.Items(at))
			s.inventory.Set(late)
			s.inventory.Remove(late)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			object := deletedAlive(true)
			object.Finalizers = []string{alive.Finalizer} // no participant is left
			r := newTestRunner(t, object, tc.listed...)
			r.current = object
			s := newSession(r, nil, object, time.Time{})
			s.record.saved = map[string]int{}
			now := s.Clock.Now()
			tc.learn(s, now.Add(-time.Hour))
			if work := s.inventory.Work(now); work != teardown.Quiet {
				t.Fatalf("the watches say %s", work)
			}
			if err := s.recheck(t.Context(), view{now: now}); err != nil || s.end.clean != 1 {
				t.Errorf("%d clean lists, %v", s.end.clean, err)
			}
		})
	}
}
