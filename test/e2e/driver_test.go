package e2e

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

func TestADeletionThatFailsKeepsTheFinalizerAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true, driver: "--faults=testdata/faults.yaml"}))
	s.createClaim("claim", deleteClass)
	volume := s.awaitBound("claim")
	s.deleteVolume(volume.Name)
	s.deleteClaim("claim")
	if message := s.awaitEvent(volume, "VolumeFailedDelete"); !strings.Contains(message, handle(volume)) {
		t.Errorf("the event does not name the volume handle: %s", message)
	}
	s.awaitVolumeGone(volume.Name)
	if s.stored(handle(volume)) {
		t.Errorf("volume %s leaked", handle(volume))
	}
	if calls := s.calls("DeleteVolume", handle(volume)); calls != 4 {
		t.Errorf("DeleteVolume was called %d times, want 4: two failures, one answer lost, one success", calls)
	}
	metrics := s.metrics()
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

// metricsAddress finds in the provisioner's log where it serves its metrics.
var metricsAddress = regexp.MustCompile(`"Serving metrics and health".* address="([^"]+)"`)

// metrics returns what the provisioner serves at /metrics.
func (s *scene) metrics() string {
	s.t.Helper()
	text, err := os.ReadFile(s.provisioner.LogFile())
	s.must(err, "read the provisioner's log")
	found := metricsAddress.FindSubmatch(text)
	if found == nil {
		s.t.Fatalf("the provisioner does not say where it serves metrics:\n%s", text)
	}
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://"+string(found[1])+"/metrics", nil)
	s.must(err, "make request")
	response, err := http.DefaultClient.Do(request)
	s.must(err, "read metrics")
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	s.must(err, "read metrics")
	return string(body)
}

func TestAnAttachedVolumeIsDeletedOnceItIsDetached(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true, driver: "--with=publish"}))
	s.createClaim("claim", deleteClass)
	volume := s.awaitBound("claim")
	attachment, err := s.client.StorageV1().VolumeAttachments().Create(s.ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: s.driver.DriverName, NodeName: "node-7",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume.Name},
		},
	}, metav1.CreateOptions{})
	s.must(err, "create attachment")
	s.passQueues() // the provisioner has seen the attachment by then
	s.deleteVolume(volume.Name)
	s.deleteClaim("claim")
	s.awaitVolume(volume.Name, "is released and waits", func(v *v1.PersistentVolume) bool {
		return v.Status.Phase == v1.VolumeReleased && finalizer.Has(v.Finalizers, finalizer.External)
	})
	if message := s.awaitEvent(volume, "VolumeDelete"); !strings.Contains(message, "still attached to node node-7, waiting for detach") {
		t.Errorf("the event does not name the node: %s", message)
	}
	s.expectKept(volume)
	s.must(s.client.StorageV1().VolumeAttachments().Delete(s.ctx, attachment.Name, metav1.DeleteOptions{}), "delete attachment")
	s.awaitVolumeGone(volume.Name)
	s.expectReclaimed(volume)
}

func TestTwoVolumesWithOneHandleNeverCostTheOthersData(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	shared := s.makeVolume("shared")
	for _, name := range []string{"mine", "yours"} {
		s.createVolume(shared, v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) { v.Name = s.namespace + "-" + name })
		s.createClaim(name, s.namespace)
		s.awaitBound(name)
	}
	mine := s.awaitBound("mine")
	s.deleteClaim("mine")
	if message := s.awaitEvent(mine, "VolumeHandleShared"); !strings.Contains(message, s.namespace) {
		t.Errorf("the event does not name the other volume: %s", message)
	}
	s.expectKept(mine)
}
