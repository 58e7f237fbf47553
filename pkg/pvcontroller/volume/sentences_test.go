package volume

import (
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Every event of a volume is written out here, to be read. A volume has no namespace; of its claim the event on the volume says
// the name alone.
func TestEventsAreSentences(t *testing.T) {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "u"}, Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "data", UID: "c"}}}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "c"}}
	claim.Annotations = map[string]string{storage.AnnStorageProvisioner: "example.com/driver"}
	denied := &answer.Refusal{Answer: errors.New(`admission webhook "w" denied the request`)}
	refused := func(write string) func(*fixture) {
		return func(s *fixture) { _ = s.Reporter.ReportRefusal(volume, write, denied) }
	}
	failed := func(write string) []string {
		return []string{"Warning WriteRefused: " + write + ` failed, and is repeated with backoff: admission webhook "w" denied the request`}
	}
	for name, tc := range map[string]struct {
		report func(*fixture)
		want   []string
	}{
		"modes differ": {func(s *fixture) { s.reportMismatch(observation{volume: volume, claim: claim}) }, []string{
			`Warning VolumeMismatch: Cannot bind PersistentVolume to requested PersistentVolumeClaim "data" due to incompatible volumeMode`,
			`Warning VolumeMismatch: Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim due to incompatible volumeMode`,
		}},
		"volume deleted before it was bound": {func(s *fixture) { s.reportNeverBound(observation{volume: volume, claim: claim}, nil) }, []string{
			`Warning VolumeDeletedBeforeBound: Volume "v" was deleted before the claim was bound to it; the volume is reclaimed, and the claim gets another volume`,
		}},
		"metadata is refused":   {refused(writesMetadata), failed("Writing the finalizers and annotations that say who deletes the disk")},
		"protection is refused": {refused(addsProtection), failed("Adding the finalizer kubernetes.io/pv-protection")},
		"removal is refused":    {refused(removesProtection), failed("Removing the finalizer kubernetes.io/pv-protection")},
		"Available is refused":  {refused(writeOf(binding.SetPhaseAvailable)), failed("Writing the phase Available")},
		"Bound is refused":      {refused(writeOf(binding.SetPhaseBound)), failed("Writing the phase Bound")},
		"Released is refused":   {refused(writeOf(binding.SetPhaseReleased)), failed("Writing the phase Released")},
		"claimRef is refused":   {refused(writeOf(binding.ClearClaimRef)), failed("Removing the reference to the claim that is gone")},
		"undone": {func(s *fixture) { _ = s.Reporter.ReportRefusal(volume, addsProtection, &controller.RevertedError{}) }, []string{
			"Warning WriteRefused: Adding the finalizer kubernetes.io/pv-protection failed, and is repeated with backoff: another program, such as an admission webhook, undoes this write each time; the write is repeated less and less often",
		}},
		"undone again and again": {func(s *fixture) { _ = s.Reporter.ReportRefusal(volume, writesMetadata, controller.ErrTooManySteps) }, []string{
			"Warning WriteRefused: Writing the finalizers and annotations that say who deletes the disk failed, and is repeated with backoff: too many writes to one object: another program reverts our writes",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			tc.report(s)
			if !slices.Equal(s.events.events, tc.want) {
				t.Errorf("events\n%q, want\n%q", s.events.events, tc.want)
			}
		})
	}
}
