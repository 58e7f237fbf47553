package cli

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// deletions is the number of volumes of TestQuickDeletionsHaveNoEvent:
//
//	go test ./test/e2e/cli -run QuickDeletions -deletions 5000
var deletions = flag.Int("deletions", 500, "volumes of TestQuickDeletionsHaveNoEvent")

// Every volume is deleted with its claim, in both orders. None waits for anything but the
// programs themselves.
func TestQuickDeletionsHaveNoEvent(t *testing.T) {
	s := harness.Own(t, harness.Setup{}, harness.Within(10*time.Minute))
	inParallel(*deletions, func(i int) { s.CreateClaim(fmt.Sprint("claim-", i), harness.DeleteClass) })
	volumes := s.AwaitManyBound(*deletions)
	begun := time.Now()
	inParallel(*deletions, func(i int) { deleteBoth(s, fmt.Sprint("claim-", i), i%2 == 0) })
	s.AwaitManyGone(volumes)
	t.Logf("%d volumes were gone after %v", *deletions, time.Since(begun).Round(time.Second))
	(&rig{Session: s}).expectEvents(map[string]int{})
	for _, request := range s.Requests() {
		if request.Resource == "events" && request.Namespace == "default" {
			t.Errorf("an event about a volume was sent: %+v", request)
			break
		}
	}
}

// deleteBoth deletes the claim and its volume, which may be gone after its claim.
func deleteBoth(s *harness.Session, name string, volumeFirst bool) {
	claim, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Get(s.Ctx, name, metav1.GetOptions{})
	s.Must(err, "read claim")
	if volumeFirst {
		s.DeleteVolume(claim.Spec.VolumeName)
		s.DeleteClaim(name)
		return
	}
	s.DeleteClaim(name)
	err = s.Client.CoreV1().PersistentVolumes().Delete(s.Ctx, claim.Spec.VolumeName, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		s.Must(err, "delete volume")
	}
}

// inParallel calls the function with 0 to count-1, 20 calls at a time.
func inParallel(count int, call func(i int)) {
	var running sync.WaitGroup
	for worker := range 20 {
		running.Go(func() {
			for i := worker; i < count; i += 20 {
				call(i)
			}
		})
	}
	running.Wait()
}

// The event that names the node says more.
func TestMoreExactEventReplacesEvent(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{DriverFlags: "--with=publish"}, harness.Within(2*harness.Timeout))
	r := &rig{Session: s}
	volume := r.bound("claim")
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "attachment"},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: s.Driver.DriverName, NodeName: "node",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name},
		}}
	_, err := s.Client.StorageV1().VolumeAttachments().Create(s.Ctx, attachment, metav1.CreateOptions{})
	s.Must(err, "create attachment")
	s.PassQueues() // until the provisioner has the attachment in its cache
	s.DeleteClaim("claim")
	s.AwaitEvent(volume, "VolumeDelete")
	s.Until("the metric counts the volume", func() bool {
		text, _ := s.HTTPGet(s.Provisioner, "/metrics")
		return hasSample(text, `exeunt_deletion_waiting{blocker="VolumeAttached"} 1`)
	})
	s.PassQueues()
	r.expectEvents(map[string]int{})
	s.Must(s.Client.StorageV1().VolumeAttachments().Delete(s.Ctx, attachment.Name, metav1.DeleteOptions{}),
		"delete attachment")
	s.AwaitVolumeGone(volume.Name)
}
