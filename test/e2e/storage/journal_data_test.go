package storage

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// removeObject deletes a PersistentVolume with its finalizers, as an administrator does.
func removeObject(s *harness.Session, volume string) {
	s.T.Helper()
	s.DeleteVolume(volume)
	_, err := s.Client.CoreV1().PersistentVolumes().Patch(s.Ctx, volume, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		s.Must(err, "remove finalizers")
	}
	s.AwaitVolumeGone(volume)
}

// passDriver provisions and deletes another claim. The driver has count other volumes.
func (j *journaled) passDriver(others int) {
	j.T.Helper()
	j.CreateClaim("marker", j.class)
	volume := j.AwaitBound("marker")
	j.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	j.DeleteClaim("marker")
	j.AwaitVolumeGone(volume.Name)
	j.expectVolumes(others)
}

// The provisioner crashed after creating the PersistentVolume and before removing the
// entry; then an administrator deleted the PersistentVolume of the Bound claim.
func TestDiskOfBoundClaimWithoutVolumeStays(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for _, policy := range []v1.PersistentVolumeReclaimPolicy{v1.PersistentVolumeReclaimRetain,
		v1.PersistentVolumeReclaimDelete} {
		t.Run(string(policy), func(t *testing.T) {
			j := newJournaled(harness.Join(t, harness.Setup{}, harness.Within(2*harness.Timeout)), policy, elect...)
			j.start()
			claim := j.open("claim")
			key := journal.EntryPrefix + string(claim.UID)
			j.awaitEntries(journal.KindActive, 1)
			text := j.leases(journal.KindActive)[0].Annotations[key]
			j.mock.Server.ClearFaults()
			volume := j.AwaitBound("claim")
			j.stop()
			removeObject(j.Session, volume.Name)
			j.edit(func(l *coordinationv1.Lease) { l.Annotations[key] = text })
			before := j.called("CreateVolume")
			j.start()
			if message := j.AwaitEvent(claim, "VolumeVanished"); !strings.Contains(message, volume.Name) {
				t.Errorf("the event does not name the volume: %s", message)
			}
			j.awaitEntries(journal.KindActive, 0)
			j.passDriver(1)
			if calls := j.called("CreateVolume") - before; calls != 1 {
				t.Errorf("CreateVolume was called %d times for the claim", calls-1)
			}
			if _, stays := j.mock.Volumes()[harness.Handle(volume)]; !stays {
				t.Errorf("the storage system does not have %s", harness.Handle(volume))
			}
		})
	}
}

// answerDropper forwards requests and loses the response to the first creation of a
// PersistentVolume, once the test allows it.
type answerDropper struct {
	forward          http.Handler
	once             sync.Once
	created, release chan struct{}
}

// ServeHTTP implements [http.Handler].
func (d *answerDropper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lost := false
	if r.Method == http.MethodPost && r.URL.Path == "/api/v1/persistentvolumes" {
		d.once.Do(func() { lost = true })
	}
	if !lost {
		d.forward.ServeHTTP(w, r)
		return
	}
	d.forward.ServeHTTP(httptest.NewRecorder(), r)
	close(d.created)
	<-d.release
	panic(http.ErrAbortHandler) // closes the connection
}

func TestDeletedVolumeWithLostCreateAnswerIsReplaced(t *testing.T) {
	j := newJournaled(harness.Join(t, harness.Setup{NoPrograms: true}, harness.Within(2*harness.Timeout)),
		v1.PersistentVolumeReclaimDelete)
	proxy, kubeconfig := j.NewLeaseProxy(sandbox.ServiceAccount(deploy.Namespace, "provisioner"))
	dropper := &answerDropper{forward: proxy.Forward, created: make(chan struct{}), release: make(chan struct{})}
	proxy.Forward, j.kubeconfig = dropper, kubeconfig
	j.start()
	claim := j.CreateClaim("claim", j.class, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnStorageProvisioner: j.mock.Config.Name} // as the pv-controller does, which does not run here
	})
	select {
	case <-dropper.created:
	case <-j.Ctx.Done():
		t.Fatal("no volume was created")
	}
	name := "pvc-" + string(claim.UID)
	dead := j.AwaitVolume(name, "exists", func(*v1.PersistentVolume) bool { return true })
	removeObject(j.Session, name)
	_, err := j.controller().DeleteVolume(j.Ctx, &spec.DeleteVolumeRequest{VolumeId: harness.Handle(dead)})
	j.Must(err, "delete the disk")
	close(dropper.release)
	again := j.AwaitVolume(name, "exists again", func(*v1.PersistentVolume) bool { return true })
	j.awaitEntries(journal.KindActive, 0)
	if _, exists := j.mock.Volumes()[harness.Handle(again)]; !exists || harness.Handle(again) == harness.Handle(dead) ||
		len(j.mock.Volumes()) != 1 {
		t.Errorf("the new volume has the handle %s, the driver the volumes %v; the deleted volume had %s",
			harness.Handle(again), j.mock.Volumes(), harness.Handle(dead))
	}
}

// controller returns a CSI client of the test's driver.
func (j *journaled) controller() spec.ControllerClient {
	j.T.Helper()
	connection, err := grpc.NewClient("unix://"+j.mock.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	j.Must(err, "connect to the driver")
	j.T.Cleanup(func() { _ = connection.Close() })
	return spec.NewControllerClient(connection)
}
