package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// directory makes a directory with a file below the one that host-path volumes may
// be deleted from; it is removed after the test.
func (s *scene) directory() string {
	s.t.Helper()
	dir, err := os.MkdirTemp(intree.HostPathRoot, "exeunt-volume-")
	s.must(err, "make directory")
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.must(os.WriteFile(filepath.Join(dir, "data"), []byte("x"), 0o600), "write data")
	return dir
}

// hostPath makes a volume a host-path one at the path.
func hostPath(path string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}}
	}
}

// provisionedBy lets a volume look as if the plugin had made it.
func provisionedBy(plugin string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		metav1.SetMetaDataAnnotation(&v.ObjectMeta, storage.AnnDynamicallyProvisioned, plugin)
	}
}

// expectData checks whether the data of a host-path volume is still there.
func (s *scene) expectData(path string, wanted bool) {
	s.t.Helper()
	_, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		s.t.Fatal(err)
	case wanted != (err == nil):
		s.t.Errorf("the data in %s is there: %v, want %v", path, err == nil, wanted)
	}
}

func TestAHostPathVolumeIsReclaimedInEveryOrder(t *testing.T) {
	for _, honor := range []bool{true, false} {
		for _, static := range []bool{true, false} {
			for _, o := range []order{claimOnly, volumeThenClaim} {
				t.Run(fmt.Sprintf("gate %v/static %v/%s", honor, static, o), func(t *testing.T) {
					t.Parallel()
					s := enter(t, shared(t, setup{honor: honor}))
					dir := s.directory()
					made := []func(*v1.PersistentVolume){hostPath(dir)}
					if !static {
						made = append(made, provisionedBy(intree.HostPathName))
					}
					volume := s.createVolume("path", v1.PersistentVolumeReclaimDelete, made...)
					s.createClaim("claim", s.namespace)
					s.awaitBound("claim")
					s.awaitVolume(volume.Name, "is marked as it must be", func(v *v1.PersistentVolume) bool {
						return finalizer.Has(v.Finalizers, finalizer.InTree) == (honor && !static)
					})
					if o == volumeThenClaim {
						s.deleteVolume(volume.Name)
					}
					s.deleteClaim("claim")
					s.awaitVolumeGone(volume.Name)
					s.expectData(dir, !honor && o == volumeThenClaim) // the leak of today, kept on purpose
				})
			}
		}
	}
}

func TestAHostPathVolumeThatIsKeptOrStillClaimedIsNotDeleted(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	dir := s.directory()
	volume := s.createVolume("path", v1.PersistentVolumeReclaimDelete, hostPath(dir), provisionedBy(intree.HostPathName))
	s.createClaim("claim", s.namespace)
	s.awaitBound("claim")
	s.deleteVolume(volume.Name)
	s.passQueues()
	s.expectData(dir, true) // for its claim is there
	s.setPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
	s.awaitVolume(volume.Name, "has lost the finalizer", func(v *v1.PersistentVolume) bool { return !finalizer.Has(v.Finalizers, finalizer.InTree) })
	s.deleteClaim("claim")
	s.awaitVolumeGone(volume.Name)
	s.passQueues()
	s.expectData(dir, true)
}

func TestAnInTreeVolumeWithoutItsFinalizerIsHeldUntilItsPluginHasDeletedIt(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	dir := s.directory()
	// Nobody may delete what is a symbolic link, so that the volume has to wait.
	link := dir + "-link"
	s.must(os.Symlink(dir, link), "make link")
	t.Cleanup(func() { _ = os.RemoveAll(link) })
	volume := s.createVolume("path", v1.PersistentVolumeReclaimRetain, hostPath(link), provisionedBy(intree.HostPathName))
	s.createClaim("claim", s.namespace)
	s.awaitBound("claim")
	s.deleteVolume(volume.Name)
	s.setPolicy(volume.Name, v1.PersistentVolumeReclaimDelete) // too late for the finalizer
	s.deleteClaim("claim")
	held := s.awaitVolume(volume.Name, "has failed", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed })
	if finalizer.Has(held.Finalizers, finalizer.InTree) || !finalizer.Has(held.Finalizers, finalizer.VolumeProtection) {
		t.Errorf("the volume is held by %v, want pv-protection alone", held.Finalizers)
	}
	s.awaitEvent(volume, "VolumeFailedDelete")
	s.passQueues()
	s.expectData(dir, true)
	// What failed is tried again, and its success is the volume's end.
	s.must(errors.Join(os.Remove(link), os.Mkdir(link, 0o700)), "replace link")
	s.awaitVolumeGone(volume.Name)
	s.expectData(link, false)
	s.expectData(dir, true)
}

func TestAPathOutsideOfTheDirectoryIsNeverDeleted(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.createVolume("path", v1.PersistentVolumeReclaimDelete, hostPath("/var/tmp/"+s.namespace))
	s.createClaim("claim", s.namespace)
	s.awaitBound("claim")
	s.deleteClaim("claim")
	failed := s.awaitVolume(volume.Name, "has failed", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed })
	if message := s.awaitEvent(volume, "VolumeFailedDelete"); message != failed.Status.Message {
		t.Errorf("the event says %q, the status %q", message, failed.Status.Message)
	}
	s.setPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
	s.deleteVolume(volume.Name)
	s.awaitVolumeGone(volume.Name)
}

func TestTwoHostPathVolumesAtOnePlaceKeepTheirData(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	dir := s.directory()
	volume := s.createVolume("path", v1.PersistentVolumeReclaimDelete, hostPath(dir))
	s.createClaim("claim", s.namespace)
	s.awaitBound("claim")
	other := s.createVolume("below", v1.PersistentVolumeReclaimRetain, hostPath(filepath.Join(dir, "below")))
	s.awaitVolume(other.Name, "is available", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeAvailable })
	s.deleteClaim("claim")
	s.awaitVolume(volume.Name, "is released", isReleased)
	s.awaitEvent(volume, "VolumeHandleShared")
	s.passQueues()
	s.awaitVolume(volume.Name, "stays released", isReleased)
	s.expectData(filepath.Join(dir, "data"), true)
	s.deleteVolume(other.Name) // which wakes the one that waits
	s.awaitVolumeGone(volume.Name)
	s.expectData(dir, false)
}

func TestHostPathsOfDifferentNodesAreReclaimed(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	dir := s.directory()
	on := func(node string) func(*v1.PersistentVolume) {
		return func(v *v1.PersistentVolume) {
			v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{node}}},
			}}}}
		}
	}
	volume := s.createVolume("path", v1.PersistentVolumeReclaimDelete, hostPath(dir), on(s.namespace+"-a"))
	s.createClaim("claim", s.namespace)
	s.awaitBound("claim")
	other := s.createVolume("other", v1.PersistentVolumeReclaimDelete, hostPath(dir), on(s.namespace+"-b"))
	s.awaitVolume(other.Name, "is available", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeAvailable })
	s.deleteClaim("claim")
	s.awaitVolumeGone(volume.Name)
}

func TestVolumeOfUnboundClaimIsNotProtectedForever(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	link := s.directory() + "-link" // which the plugin does not delete
	s.must(os.Symlink("/nowhere", link), "make link")
	t.Cleanup(func() { _ = os.Remove(link) })
	volume := s.createVolume("path", v1.PersistentVolumeReclaimDelete, hostPath(link))
	s.createClaim("claim", s.namespace)
	s.awaitBound("claim")
	s.deleteClaim("claim")
	s.awaitVolume(volume.Name, "has failed", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed })
	next := s.createClaim("next", "", func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("1Ti") // more than the volume has
	})
	body := fmt.Sprintf(`{"spec":{"claimRef":{"name":"next","uid":%q,"resourceVersion":null}}}`, next.UID)
	_, err := s.client.CoreV1().PersistentVolumes().Patch(s.ctx, volume.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	s.must(err, "give volume to another claim")
	s.deleteVolume(volume.Name)
	s.awaitVolumeGone(volume.Name)
}

func TestAnAvailableInTreeVolumeWithItsFinalizerDoesNotHangWhenDeleted(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	dir := s.directory()
	volume := s.createVolume("path", v1.PersistentVolumeReclaimDelete, hostPath(dir), provisionedBy(intree.HostPathName))
	s.awaitVolume(volume.Name, "has the finalizer", func(v *v1.PersistentVolume) bool {
		return finalizer.Has(v.Finalizers, finalizer.InTree) && v.Status.Phase == v1.VolumeAvailable
	})
	s.deleteVolume(volume.Name)
	s.awaitVolumeGone(volume.Name)
	s.passQueues()
	s.expectData(dir, true) // nobody claimed it, so there was nothing to reclaim
}

// versions returns every version of the volume from its creation until the
// condition holds.
func (s *scene) versions(watcher watch.Interface, holds func(*v1.PersistentVolume) bool) []*v1.PersistentVolume {
	s.t.Helper()
	var seen []*v1.PersistentVolume
	for {
		select {
		case event := <-watcher.ResultChan():
			volume, ok := event.Object.(*v1.PersistentVolume)
			if !ok {
				s.t.Fatalf("watch of the volume ended with %+v", event)
			}
			seen = append(seen, volume)
			if holds(volume) {
				return seen
			}
		case <-s.ctx.Done():
			s.t.Fatalf("the volume never became what it should; last seen: %+v", seen)
		}
	}
}

func TestAHandOverBetweenPluginAndDriverIsOneWrite(t *testing.T) {
	external, inTree := string(finalizer.External), string(finalizer.InTree)
	for name, tc := range map[string]struct {
		plugin     string
		source     v1.PersistentVolumeSource
		finalizers []string
		migratedTo string
		want       func(*v1.PersistentVolume) bool
	}{
		"migration was switched off: EX out, IT in": {
			intree.HostPathName, v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/tmp/exeunt-none"}},
			[]string{external}, "path.csi.example.com",
			func(v *v1.PersistentVolume) bool {
				return finalizer.Has(v.Finalizers, finalizer.InTree) && !finalizer.Has(v.Finalizers, finalizer.External) && v.Annotations[storage.AnnMigratedTo] == ""
			},
		},
		"migrated: IT out, EX kept": {
			"kubernetes.io/gce-pd", v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}},
			[]string{inTree, external}, "",
			func(v *v1.PersistentVolume) bool {
				return !finalizer.Has(v.Finalizers, finalizer.InTree) && finalizer.Has(v.Finalizers, finalizer.External) && v.Annotations[storage.AnnMigratedTo] == "pd.csi.storage.gke.io"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enter(t, shared(t, setup{honor: true}))
			volume := s.newVolume("disk", v1.PersistentVolumeReclaimDelete, provisionedBy(tc.plugin), func(v *v1.PersistentVolume) {
				v.Finalizers, v.Spec.PersistentVolumeSource = tc.finalizers, tc.source
				if tc.migratedTo != "" {
					v.Annotations[storage.AnnMigratedTo] = tc.migratedTo
				}
			})
			watcher, err := s.client.CoreV1().PersistentVolumes().Watch(s.ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", volume.Name).String()})
			s.must(err, "watch volume")
			defer watcher.Stop()
			_, err = s.client.CoreV1().PersistentVolumes().Create(s.ctx, volume, metav1.CreateOptions{})
			s.must(err, "create volume")
			for i, version := range s.versions(watcher, tc.want) {
				guarded := finalizer.Has(version.Finalizers, finalizer.External) || finalizer.Has(version.Finalizers, finalizer.InTree)
				if !guarded {
					t.Errorf("version %d of the volume was without a finalizer: %v", i, version.Finalizers)
				}
			}
			s.awaitVolume(volume.Name, "is available", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeAvailable })
			if writes := s.writesTo(volume.Name); writes != 1 {
				t.Errorf("the pv-controller wrote the volume's metadata %d times, want once", writes)
			}
		})
	}
}

// writesTo counts the writes of the pv-controller to the volume, but for its status.
func (s *scene) writesTo(volume string) int {
	s.t.Helper()
	events, err := sandbox.ReadAudit(s.plane.AuditLog)
	s.must(err, "read audit log")
	count := 0
	for _, event := range events {
		ours := event.User == sandbox.PVControllerAccount.Name() && event.Resource == "persistentvolumes" && event.Name == volume
		if ours && event.Writes() && event.Subresource == "" && event.Code < 300 {
			count++
		}
	}
	return count
}
