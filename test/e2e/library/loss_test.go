package library

import (
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// Subjects of the table.
const (
	retainedLate = "Delete failed, policy turned to Retain, watch late"
	nameTaken    = "another PersistentVolume takes the name during Provision, claim deleted"
)

// The administrator saves a volume whose deletion has failed. The retry must not delete
// the data, though the change of the policy has not come by the watch.
func TestLateWatchOfRetainedVolume(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			var proxy *lateWatch
			s := newFixture(t, on)
			proxy, s.settings.Kubeconfig = s.newLateWatch()
			s.setResult(deleting, fails)
			s.start()
			claim := s.CreateClaim("claim", s.name)
			volume := s.AwaitBound(claim.Name)
			s.DeleteClaim(claim.Name)
			s.Until("Delete fails", func() bool { return s.count(deleting, volume.Name) > 0 })
			proxy.hold()
			s.SetPolicy(volume.Name, keep)
			if on.leaksOnRestart() {
				calls := s.count(deleting, volume.Name) // one may be under way
				s.Until("Delete is retried", func() bool { return s.count(deleting, volume.Name) > calls+1 })
				s.succeed()
				s.Until("the data is lost", func() bool { return s.count(deleted, volume.Name) > 0 })
				s.record(retainedLate, "**data lost**")
				return
			}
			s.AwaitVolume(volume.Name, "has no finalizer",
				func(v *v1.PersistentVolume) bool { return !slices.Contains(v.Finalizers, external) })
			s.succeed()
			if !s.stored(directory(volume)) || s.count(deleted, volume.Name) > 0 {
				t.Error("the data of a volume with policy Retain is lost")
			}
			s.record(retainedLate, "kept")
		})
	}
}

// The volume with the name is of somebody else.
func TestTakenNameOfVolume(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			s := startFixture(t, on)
			s.awaitWatch()
			var once sync.Once
			s.setReaction(func(c call) result {
				if c.method == provisioned {
					once.Do(func() { s.takeName(c.volume) })
				}
				return succeeds
			})
			claim := s.CreateClaim("claim", s.name)
			s.Until("Provision was called", func() bool { return s.count(provisioned, volumeOf(claim)) > 0 })
			if !on.leaksOnRestart() {
				s.Until("the volume is deleted", func() bool { return s.count(deleted, volumeOf(claim)) > 0 })
			}
			s.passQueues()
			s.DeleteClaim(claim.Name)
			s.AwaitClaimGone(claim.Name)
			s.expectLeak(nameTaken, on.leaksOnRestart())
		})
	}
}

// takeName creates a PersistentVolume of somebody else.
func (s *fixture) takeName(name string) {
	volume := s.NewVolume(name, keep, s.inDirectory("/nowhere"))
	volume.Name = name
	if _, err := s.Client.CoreV1().PersistentVolumes().Create(s.Ctx, volume, metav1.CreateOptions{}); err != nil {
		s.T.Errorf("create volume: %v", err)
	}
}
