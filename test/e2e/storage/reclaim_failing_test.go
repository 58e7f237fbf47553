package storage

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestFailedDeletionKeepsFinalizerAndIsRetried(t *testing.T) {
	s := harness.Join(t, harness.Setup{DriverFlags: "--faults=../testdata/faults.yaml"})
	s.CreateClaim("claim", harness.DeleteClass)
	volume := s.AwaitBound("claim")
	s.DeleteVolume(volume.Name)
	s.DeleteClaim("claim")
	if message := s.AwaitEvent(volume, "VolumeFailedDelete"); !strings.Contains(message, harness.Handle(volume)) {
		t.Errorf("the event does not name the volume handle: %s", message)
	}
	s.AwaitVolumeGone(volume.Name)
	if s.IsStored(harness.Handle(volume)) {
		t.Errorf("volume %s leaked", harness.Handle(volume))
	}
	if calls := s.CountCalls("DeleteVolume", harness.Handle(volume)); calls != 4 {
		t.Errorf("DeleteVolume was called %d times, want 4: two failures, one answer lost, one success", calls)
	}
	metrics, _ := s.HTTPGet(s.Provisioner, "/metrics")
	for _, line := range []string{
		`controller_persistentvolume_delete_failed_total{class="delete"} 3`,
		`controller_persistentvolume_delete_total{class="delete"} 1`,
		`controller_persistentvolumeclaim_provision_total{class="delete",source=""} 1`,
		`grpc_status_code="Unavailable",method_name="/csi.v1.Controller/DeleteVolume"`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

func TestAttachedVolumeIsDeletedAfterDetach(t *testing.T) {
	s := harness.Join(t, harness.Setup{DriverFlags: "--with=publish"})
	s.CreateClaim("claim", harness.DeleteClass)
	volume := s.AwaitBound("claim")
	attachment, err := s.Client.StorageV1().VolumeAttachments().Create(s.Ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: s.Driver.DriverName, NodeName: "node-7",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name},
		},
	}, metav1.CreateOptions{})
	s.Must(err, "create attachment")
	s.PassQueues() // until the provisioner has the attachment in its cache
	s.DeleteVolume(volume.Name)
	s.DeleteClaim("claim")
	s.AwaitVolume(volume.Name, "is released and waits", func(v *v1.PersistentVolume) bool {
		return v.Status.Phase == v1.VolumeReleased && finalizer.Has(v.Finalizers, finalizer.External)
	})
	if message := s.AwaitEvent(volume, "VolumeDelete"); !strings.Contains(message,
		"still attached to node node-7, waiting for detach") {
		t.Errorf("the event does not name the node: %s", message)
	}
	expectKept(s, volume)
	s.Must(s.Client.StorageV1().VolumeAttachments().Delete(s.Ctx, attachment.Name, metav1.DeleteOptions{}),
		"delete attachment")
	s.AwaitVolumeGone(volume.Name)
	s.ExpectReclaimed(volume)
}

func TestVolumesWithOneHandleKeepData(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	shared := s.CreateStoredVolume("shared")
	for _, name := range []string{"first", "second"} {
		s.CreateVolume(shared, v1.PersistentVolumeReclaimDelete,
			func(v *v1.PersistentVolume) { v.Name = s.Namespace + "-" + name })
		s.CreateClaim(name, s.Namespace)
		s.AwaitBound(name)
	}
	first := s.AwaitBound("first")
	s.DeleteClaim("first")
	if message := s.AwaitEvent(first, "VolumeHandleShared"); !strings.Contains(message, s.Namespace) {
		t.Errorf("the event does not name the other volume: %s", message)
	}
	expectKept(s, first)
}
