package library

import (
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// Subjects of the table.
const (
	killed        = "killed between Provision and the PersistentVolume, claim deleted"
	killedAlive   = "killed between Provision and the PersistentVolume, claim lives"
	lost          = "answer of Provision lost, provisioner restarted, claim deleted"
	lostNoRestart = "answer of Provision lost, claim deleted"
	lostOften     = "answer of Provision lost 16 times, claim deleted"
)

// volumeOf is the name of the claim's volume.
func volumeOf(claim *v1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

// killAfterProvision kills the provisioner as soon as the volume of a new claim exists.
func (s *fixture) killAfterProvision() *v1.PersistentVolumeClaim {
	s.T.Helper()
	s.setReaction(func(c call) result {
		if c.method == provisioned {
			s.kill()
		}
		return succeeds
	})
	claim := s.CreateClaim("claim", s.name)
	s.awaitExit()
	s.succeed()
	if left := s.leaked(); len(left) != 1 {
		s.T.Fatalf("directories without a PersistentVolume: %v, want one", left)
	}
	return claim
}

// awaitExit waits until the provisioner's process has ended.
func (s *fixture) awaitExit() {
	s.T.Helper()
	select {
	case <-s.process.Done():
	case <-s.Ctx.Done():
		s.T.Fatal("the provisioner is still running")
	}
}

// expectLeak expects no claim, no PersistentVolume, and a leaked volume only with v10.
func (s *fixture) expectLeak(topic string, leaks bool) {
	s.T.Helper()
	if !leaks {
		s.Until("nothing is leaked", func() bool { return len(s.leaked()) == 0 })
	}
	s.passQueues()
	left := s.leaked()
	outcome := "reclaimed"
	if len(left) > 0 {
		outcome = "**leaked**"
	}
	s.record(topic, outcome)
	if (len(left) > 0) != leaks {
		s.T.Errorf("directories without a PersistentVolume: %v, leak expected: %v", left, leaks)
	}
}

func TestKillBeforeVolumeIsRecorded(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			s := startFixture(t, on)
			claim := s.killAfterProvision()
			s.DeleteClaim(claim.Name)
			s.AwaitClaimGone(claim.Name)
			s.start()
			s.expectLeak(killed, on.leaksOnRestart())
		})
	}
}

func TestKillBeforeVolumeOfLivingClaimIsRecorded(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			s := startFixture(t, on)
			claim := s.killAfterProvision()
			s.start()
			s.AwaitBound(claim.Name)
			s.DeleteClaim(claim.Name)
			s.AwaitClaimGone(claim.Name)
			s.expectLeak(killedAlive, false)
		})
	}
}

// loseAnswer creates a claim whose volume exists though no answer came.
func (s *fixture) loseAnswer() *v1.PersistentVolumeClaim {
	s.T.Helper()
	s.setResult(provisioned, answerLost)
	claim := s.CreateClaim("claim", s.name)
	s.Until("Provision was called", func() bool { return s.count(provisioned, volumeOf(claim)) > 0 })
	s.DeleteClaim(claim.Name)
	s.AwaitClaimGone(claim.Name)
	return claim
}

func TestLostAnswerOfDeletedClaim(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			s := startFixture(t, on)
			s.loseAnswer()
			s.stop()
			s.succeed()
			s.start()
			s.expectLeak(lost, on.leaksOnRestart())
		})
	}
}

func TestLostAnswerOfDeletedClaimWithoutRestart(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			s := startFixture(t, on)
			s.loseAnswer()
			s.succeed()
			s.expectLeak(lostNoRestart, false)
		})
	}
}

// v10 stops after 15 retries (FailedProvisionThreshold), though Provision has said that
// the storage system may still work on the volume.
func TestAnswerLostManyTimes(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			s := startFixture(t, on)
			claim := s.loseAnswer()
			s.Until("Provision was called 16 times", func() bool { return s.count(provisioned, volumeOf(claim)) >= 16 })
			if on.leaksOnRestart() {
				s.Until("v10 gives up", func() bool { return s.logged("Giving up syncing claim") })
			}
			s.succeed()
			s.expectLeak(lostOften, on.leaksOnRestart())
		})
	}
}

// logged reports whether the provisioner's process has logged the text.
func (s *fixture) logged(text string) bool {
	s.T.Helper()
	log, err := os.ReadFile(s.process.LogFile())
	s.Must(err, "read log")
	return strings.Contains(string(log), text)
}
