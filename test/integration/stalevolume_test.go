package integration

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
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/deletion"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// countingDriver records the calls and deletes nothing.
type countingDriver struct {
	name    string
	deleted []string
}

func (d *countingDriver) Name() string { return d.name }

func (d *countingDriver) DeleteVolume(_ context.Context, handle string, _ map[string]string) error {
	d.deleted = append(d.deleted, handle)
	return nil
}

// noPlugin is the translator of a driver that replaces no in-tree plugin.
type noPlugin struct{}

func (noPlugin) Volume(*v1.PersistentVolume) (*v1.PersistentVolume, error) {
	return nil, errors.New("no in-tree volume")
}

func (noPlugin) Disk(*v1.PersistentVolume) string { return "" }

// staleDeletion returns the deletion controller on a cache that has only the volume.
func staleDeletion(s *harness.Session, cached *v1.PersistentVolume) (*deletion.Controller, *countingDriver) {
	s.T.Helper()
	driver := &countingDriver{name: harness.UnservedDriver}
	volumes := informers.NewSharedInformerFactory(s.Client, 0).Core().V1().PersistentVolumes().Informer()
	c, err := deletion.New(deletion.Config{
		Client: s.Client, Volumes: volumes, Honor: true,
		Deleter:  &csibackend.Deleter{Client: s.Client, Driver: driver, Translator: noPlugin{}},
		Reporter: controller.NewReporter(record.NewFakeRecorder(100)), Metrics: librarymetrics.New("stale"),
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second}, Locks: &controller.KeyLocks{},
	})
	s.Must(err, "make controller")
	s.Must(volumes.GetStore().Add(cached), "fill cache")
	return c, driver
}

// deletedBy returns the handles that the deletion controller deletes on a cache that has
// only the volume. It reads a volume again that only the cache has.
func deletedBy(s *harness.Session, cached *v1.PersistentVolume) []string {
	s.T.Helper()
	c, driver := staleDeletion(s, cached)
	if err := c.Reconcile(s.Ctx, cached.Name); !errors.Is(err, controller.ErrStaleCache) {
		s.Must(err, "reconcile")
	}
	return driver.deleted
}

// boundPair returns a static volume of UnservedDriver that is bound to a claim.
func boundPair(s *harness.Session) *v1.PersistentVolume {
	s.T.Helper()
	s.CreateVolume("pair", v1.PersistentVolumeReclaimDelete,
		func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = harness.UnservedDriver })
	s.CreateClaim("claim", s.Namespace)
	return s.AwaitBound("claim")
}

// releasedVolume returns a released static volume of UnservedDriver.
func releasedVolume(s *harness.Session) *v1.PersistentVolume {
	s.T.Helper()
	bound := boundPair(s)
	s.DeleteClaim("claim")
	return s.AwaitVolume(bound.Name, "is released", harness.IsReleased)
}

func TestBoundVolumeCachedAsReleasedIsNotDeleted(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	bound := boundPair(s)
	wrong := bound.DeepCopy()
	wrong.Status.Phase = v1.VolumeReleased
	if deleted := deletedBy(s, wrong); len(deleted) > 0 {
		t.Errorf("the data of a bound volume was deleted: %v", deleted)
	}
}

func TestReleasedVolumeWithLiveClaimIsNotDeleted(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	bound := boundPair(s)
	wrong := setPhase(s, bound, v1.VolumeReleased) // an error on the server itself
	if deleted := deletedBy(s, wrong); len(deleted) > 0 {
		t.Errorf("the data of a live claim was deleted: %v", deleted)
	}
}

func TestPolicyRetainWinsOverStaleCache(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	released := releasedVolume(s)
	s.SetPolicy(released.Name, v1.PersistentVolumeReclaimRetain)
	if deleted := deletedBy(s, released); len(deleted) > 0 {
		t.Errorf("the data of a volume with policy Retain was deleted: %v", deleted)
	}
}

func TestRecreatedVolumeIsNotDeletedFromStaleCache(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	released := releasedVolume(s)
	old := released.DeepCopy()
	old.UID = "old-uid"
	if deleted := deletedBy(s, old); len(deleted) > 0 {
		t.Errorf("a volume of the same name was deleted: %v", deleted)
	}
	// The current volume is deleted, which shows that the test can fail.
	if deleted := deletedBy(s, released); len(deleted) != 1 {
		t.Errorf("a released volume was deleted %d times, want once", len(deleted))
	}
	s.AwaitVolumeGone(released.Name)
}

func TestHandleOfAnotherDriverIsNotDeleted(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	s.CreateVolume("copied", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": harness.UnservedDriver}
		v.Spec.CSI.Driver = "another.example.com"
	})
	s.CreateClaim("claim", s.Namespace)
	bound := s.AwaitBound("claim")
	s.DeleteClaim("claim")
	released := s.AwaitVolume(bound.Name, "is released", harness.IsReleased)
	c, driver := staleDeletion(s, released)
	if err := c.Reconcile(s.Ctx, bound.Name); err == nil || !strings.Contains(err.Error(), "another.example.com") {
		t.Errorf("Reconcile = %v, want an error that names the driver", err)
	}
	if len(driver.deleted) > 0 {
		t.Errorf("the handle of another driver was deleted: %v", driver.deleted)
	}
}

func TestEmptyClaimCacheReleasesNoVolume(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	bound := boundPair(s)
	caches, err := pvcache.New(informers.NewSharedInformerFactory(s.Client, 0))
	s.Must(err, "make caches")
	c, err := pvcontroller.New(pvcontroller.Config{
		Clients: pvcontroller.OneClient(s.Client), Caches: caches, Honor: true,
		Reporter:   controller.NewReporter(record.NewFakeRecorder(100)),
		Plugins:    intree.NewSet(migration.New()),
		Operations: metrics.NewOperations(),
	})
	s.Must(err, "make controller")
	fill(s, caches.Volumes, bound)
	s.Must(c.Volumes.Reconcile(s.Ctx, bound.Name), "reconcile")
	now, err := s.Client.CoreV1().PersistentVolumes().Get(s.Ctx, bound.Name, metav1.GetOptions{})
	s.Must(err, "read volume")
	if now.Status.Phase != v1.VolumeBound || now.ResourceVersion != bound.ResourceVersion {
		t.Errorf("the volume was written: phase %s, version %s, was %s", now.Status.Phase, now.ResourceVersion,
			bound.ResourceVersion)
	}
}

// Both caches are older than the binding: a controller that trusts them would bind the
// pair again, or set the volume Available.
func TestStaleCachesChangeNothing(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	youngVolume := s.CreateVolume("stale", v1.PersistentVolumeReclaimDelete,
		func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = harness.UnservedDriver })
	youngVolume = s.AwaitVolume(youngVolume.Name, "is available", harness.IsAvailable)
	youngClaim := s.CreateClaim("claim", s.Namespace,
		func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = youngVolume.Name })
	volumeNow := s.AwaitBound("claim")
	claimNow, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Get(s.Ctx, "claim", metav1.GetOptions{})
	s.Must(err, "read claim")

	caches, err := pvcache.New(informers.NewSharedInformerFactory(s.Client, 0))
	s.Must(err, "make caches")
	c, err := pvcontroller.New(pvcontroller.Config{
		Clients: pvcontroller.OneClient(s.Client), Caches: caches, Dynamic: true, Honor: true,
		Reporter:   controller.NewReporter(record.NewFakeRecorder(100)),
		Plugins:    intree.NewSet(migration.New()),
		Operations: metrics.NewOperations(),
	})
	s.Must(err, "make controllers")
	fill(s, caches.Volumes, youngVolume)
	fill(s, caches.Claims, youngClaim)
	if err := c.Claims.Reconcile(s.Ctx, s.Namespace+"/claim"); !patch.IsStale(err) {
		t.Errorf("binding again: %v, want a conflict because the volume has changed", err)
	}
	s.Must(c.Volumes.Reconcile(s.Ctx, youngVolume.Name), "reconcile volume")
	expectUnwritten(s, volumeNow, claimNow)
}

// expectUnwritten checks that both objects have an unchanged resourceVersion.
func expectUnwritten(s *harness.Session, volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) {
	s.T.Helper()
	volumeNow, err := s.Client.CoreV1().PersistentVolumes().Get(s.Ctx, volume.Name, metav1.GetOptions{})
	s.Must(err, "read volume")
	claimNow, err := s.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(s.Ctx, claim.Name, metav1.GetOptions{})
	s.Must(err, "read claim")
	if volumeNow.ResourceVersion != volume.ResourceVersion || claimNow.ResourceVersion != claim.ResourceVersion {
		s.T.Errorf("an object was written: the volume is %+v, the claim %+v", volumeNow, claimNow)
	}
}

func fill(s *harness.Session, informer cache.SharedIndexInformer, object any) {
	s.T.Helper()
	s.Must(informer.GetStore().Add(object), "fill cache")
}

// setPhase writes a phase that no controller would write.
func setPhase(s *harness.Session, bound *v1.PersistentVolume, phase v1.PersistentVolumePhase) *v1.PersistentVolume {
	s.T.Helper()
	wrong := bound.DeepCopy()
	wrong.Status.Phase = phase
	written, err := s.Client.CoreV1().PersistentVolumes().UpdateStatus(s.Ctx, wrong, metav1.UpdateOptions{})
	s.Must(err, "write phase")
	return written
}
