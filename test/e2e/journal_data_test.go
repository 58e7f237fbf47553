package e2e

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
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// removeObject removes a PersistentVolume by hand, whatever protects it.
func (s *scene) removeObject(volume string) {
	s.t.Helper()
	s.deleteVolume(volume)
	_, err := s.client.CoreV1().PersistentVolumes().Patch(s.ctx, volume, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		s.must(err, "remove finalizers")
	}
	s.awaitVolumeGone(volume)
}

// passDriver sends another claim through the provisioner, from its creation until its
// volume is gone. The driver has so many other volumes.
func (j *journaled) passDriver(others int) {
	j.t.Helper()
	j.createClaim("marker", j.class)
	volume := j.awaitBound("marker")
	j.setPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	j.deleteClaim("marker")
	j.awaitVolumeGone(volume.Name)
	j.expectVolumes(others)
}

// The process ended between the PersistentVolume and the end of the entry; then an
// administrator removed the PersistentVolume of the Bound claim.
func TestDiskOfABoundClaimWithoutVolumeStays(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1.PersistentVolumeReclaimPolicy{v1.PersistentVolumeReclaimRetain, v1.PersistentVolumeReclaimDelete} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			j := enterFor(t, shared(t, setup{honor: true}), 2*patience).newJournaled(policy, elect...)
			j.start()
			claim := j.open("claim")
			key := journal.EntryPrefix + string(claim.UID)
			j.awaitEntries(journal.Active, 1)
			text := j.leases(journal.Active)[0].Annotations[key]
			j.mock.server.ClearFaults()
			volume := j.awaitBound("claim")
			j.stop()
			j.removeObject(volume.Name)
			j.edit(func(l *coordinationv1.Lease) { l.Annotations[key] = text })
			asked := j.called("CreateVolume")
			j.start()
			if message := j.awaitEvent(claim, "VolumeVanished"); !strings.Contains(message, volume.Name) {
				t.Errorf("the event does not name the volume: %s", message)
			}
			j.awaitEntries(journal.Active, 0)
			j.passDriver(1)
			if calls := j.called("CreateVolume") - asked; calls != 1 {
				t.Errorf("CreateVolume was called %d times beside the marker", calls-1)
			}
			if _, stays := j.mock.volumes()[handle(volume)]; !stays {
				t.Errorf("the disk %s is gone", handle(volume))
			}
		})
	}
}

// answerDropper passes requests on, but loses the answer to the first creation of a
// PersistentVolume, once the test lets it.
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
	t.Parallel()
	j := enterFor(t, shared(t, setup{idle: true}), 2*patience).newJournaled(v1.PersistentVolumeReclaimDelete)
	proxy, kubeconfig := j.newLeaseProxy(sandbox.ServiceAccount(deploy.Namespace, "provisioner"))
	dropper := &answerDropper{forward: proxy.forward, created: make(chan struct{}), release: make(chan struct{})}
	proxy.forward, j.kubeconfig = dropper, kubeconfig
	j.start()
	claim := j.createClaim("claim", j.class, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnStorageProvisioner: j.mock.config.Name} // nobody binds here
	})
	select {
	case <-dropper.created:
	case <-j.ctx.Done():
		t.Fatal("no volume was created")
	}
	name := "pvc-" + string(claim.UID)
	dead := j.awaitVolume(name, "exists", func(*v1.PersistentVolume) bool { return true })
	j.removeObject(name)
	_, err := j.controller().DeleteVolume(j.ctx, &spec.DeleteVolumeRequest{VolumeId: handle(dead)})
	j.must(err, "delete the disk")
	close(dropper.release)
	again := j.awaitVolume(name, "exists again", func(*v1.PersistentVolume) bool { return true })
	j.awaitEntries(journal.Active, 0)
	if _, exists := j.mock.volumes()[handle(again)]; !exists || handle(again) == handle(dead) || len(j.mock.volumes()) != 1 {
		t.Errorf("the volume has the handle %s, the driver the volumes %v; deleted was %s", handle(again), j.mock.volumes(), handle(dead))
	}
}

// controller calls the test's own driver.
func (j *journaled) controller() spec.ControllerClient {
	j.t.Helper()
	connection, err := grpc.NewClient("unix://"+j.mock.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	j.must(err, "connect to the driver")
	j.t.Cleanup(func() { _ = connection.Close() })
	return spec.NewControllerClient(connection)
}

// withOldFinalizer is a claim with the finalizer of an earlier version.
func withOldFinalizer(claim *v1.PersistentVolumeClaim) {
	claim.Finalizers = append(claim.Finalizers, string(finalizer.Provisioning))
}

// addOldFinalizer puts the finalizer of an earlier version on the claim.
func (s *scene) addOldFinalizer(name string) {
	s.t.Helper()
	for {
		claim, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Get(s.ctx, name, metav1.GetOptions{})
		s.must(err, "read claim")
		withOldFinalizer(claim)
		_, err = s.client.CoreV1().PersistentVolumeClaims(s.namespace).Update(s.ctx, claim, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			continue
		}
		s.must(err, "add finalizer")
		return
	}
}

func TestOldFinalizerGoesAndNoVolumeLeaks(t *testing.T) {
	t.Parallel()
	j := enterJournaled(t)
	j.start("--feature-gates=ProvisioningJournal=false") // no entries, as the earlier version
	bound, lost := j.boundClaim("bound"), j.boundClaim("lost")
	j.fail()
	pending, deleted := j.createClaim("pending", j.class), j.createClaim("deleted", j.class)
	j.awaitVolumes(4)
	j.kill()
	for _, claim := range []string{"bound", "lost", "pending", "deleted"} {
		j.addOldFinalizer(claim)
	}
	j.createClaim("refused", j.class, withOldFinalizer, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	})
	j.createClaim("unclassed", "no-such-class-"+j.namespace, withOldFinalizer, func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnStorageProvisioner: j.mock.config.Name}
	})
	waiting := newClass(j.class+"-wait", j.mock.config.Name, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingWaitForFirstConsumer)
	_, err := j.client.StorageV1().StorageClasses().Create(j.ctx, &waiting, metav1.CreateOptions{})
	j.must(err, "create class")
	j.createClaim("restored", waiting.Name, withOldFinalizer) // names no provisioner, as from a backup
	j.removeObject(lost.Name)
	for _, claim := range []string{"deleted", "unclassed", "restored"} {
		j.deleteClaim(claim)
	}
	asked := j.called("CreateVolume")
	j.start()
	for _, claim := range []string{"bound", "lost", "pending", "refused"} {
		j.awaitClaim(claim, "has no old finalizer", func(c *v1.PersistentVolumeClaim) bool { return !finalizer.Has(c.Finalizers, finalizer.Provisioning) })
	}
	for _, claim := range []string{"deleted", "unclassed", "restored"} {
		j.awaitClaimGone(claim)
	}
	if calls := j.called("CreateVolume") - asked; calls > 20 {
		t.Errorf("CreateVolume was called %d times until the finalizers were gone", calls)
	}
	j.mock.server.ClearFaults()
	recorded := j.awaitBound("pending")
	j.awaitVolumes(3)
	j.awaitVolumeGone("pvc-" + string(deleted.UID))
	j.awaitEntries(journal.Active, 0)
	j.awaitEntries(journal.Apart, 0)
	names := j.mock.volumes()
	for _, volume := range []*v1.PersistentVolume{bound, lost, recorded} {
		if names[handle(volume)] != volume.Name {
			t.Errorf("the disk %s of %s is gone", handle(volume), volume.Name)
		}
	}
	if recorded.Name != "pvc-"+string(pending.UID) {
		t.Errorf("the claim is bound to %s", recorded.Name)
	}
}

func (j *journaled) boundClaim(name string) *v1.PersistentVolume {
	j.t.Helper()
	j.createClaim(name, j.class)
	return j.awaitBound(name)
}
