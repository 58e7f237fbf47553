package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	librarymetrics "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/provisioner/deletion"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/claim"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/volume"
)

// These tests run our reconcilers in this process, on caches that they fill by
// hand, against the real API server: what a cache says is never enough to destroy
// data or to let go of a volume.

// countingDriver deletes nothing and counts what it is asked.
type countingDriver struct {
	name    string
	deleted []string
}

func (d *countingDriver) Name() string { return d.name }

func (d *countingDriver) DeleteVolume(_ context.Context, handle string, _ map[string]string) error {
	d.deleted = append(d.deleted, handle)
	return nil
}

// noPlugin is that of a driver that replaces no in-tree plugin.
type noPlugin struct{}

func (noPlugin) Volume(*v1.PersistentVolume) (*v1.PersistentVolume, error) {
	return nil, errors.New("no in-tree volume")
}

func (noPlugin) Disk(*v1.PersistentVolume) string { return "" }

// foreign is a driver that no program in the cluster serves, so that nobody but
// the test touches its volumes' finalizers.
const foreign = "stale.example.com"

// staleDeletion returns a provisioner's volume side whose cache knows only the volume.
func staleDeletion(s *scene, cached *v1.PersistentVolume) (*deletion.Controller, *countingDriver) {
	s.t.Helper()
	driver := &countingDriver{name: foreign}
	volumes := informers.NewSharedInformerFactory(s.client, 0).Core().V1().PersistentVolumes().Informer()
	c, err := deletion.New(deletion.Config{
		Client: s.client, Volumes: volumes, Driver: driver, Translator: noPlugin{}, Honor: true,
		Reporter: controller.NewReporter(record.NewFakeRecorder(100)), Metrics: librarymetrics.New("stale"),
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second}, Locks: &controller.KeyLocks{},
	})
	s.must(err, "make controller")
	s.must(volumes.GetStore().Add(cached), "fill cache")
	return c, driver
}

// deletedBy returns the handles that the volume side deletes on a cache that knows
// only the volume.
func (s *scene) deletedBy(cached *v1.PersistentVolume) []string {
	s.t.Helper()
	c, driver := staleDeletion(s, cached)
	s.must(c.Reconcile(s.ctx, cached.Name), "reconcile")
	return driver.deleted
}

// boundPair returns a static volume of the driver foreign that is bound to a claim.
func (s *scene) boundPair() *v1.PersistentVolume {
	s.t.Helper()
	s.createVolume("pair", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = foreign })
	s.createClaim("claim", s.namespace)
	return s.awaitBound("claim")
}

// releasedVolume returns a static volume of the driver foreign whose claim is gone.
func (s *scene) releasedVolume() *v1.PersistentVolume {
	s.t.Helper()
	bound := s.boundPair()
	s.deleteClaim("claim")
	return s.awaitVolume(bound.Name, "is released", isReleased)
}

func isReleased(volume *v1.PersistentVolume) bool { return volume.Status.Phase == v1.VolumeReleased }

func TestACacheThatSaysReleasedIsNeverBelieved(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	bound := s.boundPair()
	wrong := bound.DeepCopy()
	wrong.Status.Phase = v1.VolumeReleased
	if deleted := s.deletedBy(wrong); len(deleted) > 0 {
		t.Errorf("the data of a bound volume was deleted: %v", deleted)
	}
}

func TestAReleasedVolumeWhoseClaimIsAliveIsNeverDeleted(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	bound := s.boundPair()
	wrong := s.setPhase(bound, v1.VolumeReleased) // by mistake, on the server itself
	if deleted := s.deletedBy(wrong); len(deleted) > 0 {
		t.Errorf("the data under a live claim was deleted: %v", deleted)
	}
}

func TestAPolicyTurnedToRetainSavesTheDataThoughTheCacheIsLate(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	released := s.releasedVolume()
	s.setPolicy(released.Name, v1.PersistentVolumeReclaimRetain)
	if deleted := s.deletedBy(released); len(deleted) > 0 {
		t.Errorf("the data that the administrator saved was deleted: %v", deleted)
	}
}

func TestAVolumeOfTheSameNameIsNotTheOneThatTheCacheKnew(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	released := s.releasedVolume()
	old := released.DeepCopy()
	old.UID = "of-another-life"
	if deleted := s.deletedBy(old); len(deleted) > 0 {
		t.Errorf("a volume of the same name was deleted: %v", deleted)
	}
	// The true one is deleted, which shows that the test can fail.
	if deleted := s.deletedBy(released); len(deleted) != 1 {
		t.Errorf("a released volume was deleted %d times, want once", len(deleted))
	}
	s.awaitVolumeGone(released.Name)
}

func TestAHandleOfAnotherDriverIsNotDeletedWhateverTheAnnotationsSay(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s.createVolume("copied", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": foreign}
		v.Spec.CSI.Driver = "another.example.com"
	})
	s.createClaim("claim", s.namespace)
	bound := s.awaitBound("claim")
	s.deleteClaim("claim")
	released := s.awaitVolume(bound.Name, "is released", isReleased)
	c, driver := staleDeletion(s, released)
	if err := c.Reconcile(s.ctx, bound.Name); err == nil || !strings.Contains(err.Error(), "another.example.com") {
		t.Errorf("Reconcile = %v, want an error that names the driver", err)
	}
	if len(driver.deleted) > 0 {
		t.Errorf("the handle of another driver was deleted: %v", driver.deleted)
	}
}

func TestAnEmptyCacheOfClaimsReleasesNothing(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	bound := s.boundPair()
	caches, err := controller.NewCaches(informers.NewSharedInformerFactory(s.client, 0))
	s.must(err, "make caches")
	c, err := volume.New(volume.Config{
		Client: s.client, Caches: caches, Versions: controller.NewVersions(), Honor: true,
		Reporter:   controller.NewReporter(record.NewFakeRecorder(100)),
		Plugins:    intree.NewSet(migration.New()),
		Operations: metrics.NewOperations(),
		WakeClaim:  func(string) {},
	})
	s.must(err, "make controller")
	fill(s, caches.Volumes, bound)
	s.must(c.Reconcile(s.ctx, bound.Name), "reconcile")
	now, err := s.client.CoreV1().PersistentVolumes().Get(s.ctx, bound.Name, metav1.GetOptions{})
	s.must(err, "read volume")
	if now.Status.Phase != v1.VolumeBound || now.ResourceVersion != bound.ResourceVersion {
		t.Errorf("the volume was written: phase %s, version %s, was %s", now.Status.Phase, now.ResourceVersion, bound.ResourceVersion)
	}
}

// Both caches are as they were before the pair was bound: whoever believes them
// would bind it once more, or say that the volume is free.
func TestCachesThatWereWoundBackChangeNothing(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	youngVolume := s.createVolume("wound-back", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = foreign })
	youngVolume = s.awaitVolume(youngVolume.Name, "is available", isAvailable)
	youngClaim := s.createClaim("claim", s.namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = youngVolume.Name })
	volumeNow := s.awaitBound("claim")
	claimNow, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Get(s.ctx, "claim", metav1.GetOptions{})
	s.must(err, "read claim")

	caches, err := controller.NewCaches(informers.NewSharedInformerFactory(s.client, 0))
	s.must(err, "make caches")
	versions, reporter := controller.NewVersions(), controller.NewReporter(record.NewFakeRecorder(100))
	plugins := intree.NewSet(migration.New())
	claims, err := claim.New(claim.Config{Client: s.client, Caches: caches, Versions: versions, Reporter: reporter, Plugins: plugins, Operations: metrics.NewOperations(), Dynamic: true, Honor: true})
	s.must(err, "make controller")
	volumes, err := volume.New(volume.Config{Client: s.client, Caches: caches, Versions: versions, Reporter: reporter, Plugins: plugins, Operations: metrics.NewOperations(), WakeClaim: func(string) {}, Honor: true})
	s.must(err, "make controller")
	fill(s, caches.Volumes, youngVolume)
	fill(s, caches.Claims, youngClaim)
	if err := claims.Reconcile(s.ctx, s.namespace+"/claim"); !patch.IsStale(err) {
		t.Errorf("binding again: %v, want it refused because the volume has changed", err)
	}
	s.must(volumes.Reconcile(s.ctx, youngVolume.Name), "reconcile volume")
	s.expectUnwritten(volumeNow, claimNow)
}

// expectUnwritten wants both objects in the very version that they had.
func (s *scene) expectUnwritten(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) {
	s.t.Helper()
	volumeNow, err := s.client.CoreV1().PersistentVolumes().Get(s.ctx, volume.Name, metav1.GetOptions{})
	s.must(err, "read volume")
	claimNow, err := s.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(s.ctx, claim.Name, metav1.GetOptions{})
	s.must(err, "read claim")
	if volumeNow.ResourceVersion != volume.ResourceVersion || claimNow.ResourceVersion != claim.ResourceVersion {
		s.t.Errorf("something was written: the volume is %+v, the claim %+v", volumeNow, claimNow)
	}
}

func fill(s *scene, informer cache.SharedIndexInformer, object any) {
	s.t.Helper()
	s.must(informer.GetStore().Add(object), "fill cache")
}

// setPhase writes a phase as no controller would.
func (s *scene) setPhase(bound *v1.PersistentVolume, phase v1.PersistentVolumePhase) *v1.PersistentVolume {
	s.t.Helper()
	wrong := bound.DeepCopy()
	wrong.Status.Phase = phase
	written, err := s.client.CoreV1().PersistentVolumes().UpdateStatus(s.ctx, wrong, metav1.UpdateOptions{})
	s.must(err, "write phase")
	return written
}
