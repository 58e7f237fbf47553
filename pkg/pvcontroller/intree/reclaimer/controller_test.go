package reclaimer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/test/controllertest"
)

func TestSlowPluginHasEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration
		err   error
		want  string
	}{
		"plugin takes 45 s": {45 * time.Second, nil, "Normal DeletionWaiting DriverDeletes: "},
		"plugin takes 20 s": {20 * time.Second, nil, ""},
		"plugin refuses":    {0, errors.New("in use"), ""}, // the event VolumeFailedDelete says more
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete))
			s.plugin.delete = func(context.Context) error {
				<-time.After(tc.takes)
				return tc.err
			}
			events := controllertest.EventsAfter(t, func(_ *testing.T, tracker *waiting.Tracker) {
				s.Waiting = tracker
				s.must(s.Reconcile(t.Context(), "v"))
			})
			if got := strings.Join(events, "; "); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("events %q, want %q", got, tc.want)
			}
		})
	}
}

// An administrator may clear the claimRef to use the volume again.
func TestAvailableVolumeDoesNotWait(t *testing.T) {
	s := newFixture(t, releasedVolume(v1.PersistentVolumeReclaimDelete, static, func(volume *v1.PersistentVolume) {
		volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "nfs", Path: "/"}}
	}))
	controllertest.EventsAfter(t, func(t *testing.T, tracker *waiting.Tracker) {
		s.Waiting = tracker
		s.must(s.Reconcile(t.Context(), "v"))
	})
	if got := testutil.CollectAndCount(s.Waiting, "exeunt_deletion_waiting"); got != 1 {
		t.Errorf("the metric counts %d reasons of a volume without plugin, want 1", got)
	}
	s.updateCaches()
	volume := s.Caches.Volume("v").DeepCopy()
	volume.Spec.ClaimRef = nil
	_, err := s.Client.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{})
	s.must(err)
	s.updateCaches()
	s.must(s.phases.Reconcile(t.Context(), "v"))
	s.updateCaches()
	if phase := s.Caches.Volume("v").Status.Phase; phase != v1.VolumeAvailable {
		t.Fatalf("phase %s", phase)
	}
	if got := testutil.CollectAndCount(s.Waiting, "exeunt_deletion_waiting"); got != 0 {
		t.Errorf("the metric counts %d reasons of an available volume", got)
	}
}
