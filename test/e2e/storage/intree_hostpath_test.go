package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestHostPathVolumeIsReclaimedInEveryOrder(t *testing.T) {
	harness.Parallel(t, harness.Setup{}, harness.Setup{GateOff: true})
	for _, honor := range []bool{true, false} {
		for _, static := range []bool{true, false} {
			for _, o := range []harness.DeletionOrder{harness.ClaimOnly, harness.VolumeThenClaim} {
				t.Run(fmt.Sprintf("gate %v/static %v/%s", honor, static, o), func(t *testing.T) {
					s := harness.Join(t, harness.Setup{GateOff: !honor})
					dir := s.Directory()
					made := []func(*v1.PersistentVolume){harness.HostPath(dir)}
					if !static {
						made = append(made, harness.ProvisionedBy(intree.HostPathName))
					}
					volume := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, made...)
					s.CreateClaim("claim", s.Namespace)
					s.AwaitBound("claim")
					s.AwaitVolume(volume.Name, "has the finalizer if it must", func(v *v1.PersistentVolume) bool {
						return finalizer.Has(v.Finalizers, finalizer.InTree) == (honor && !static)
					})
					if o == harness.VolumeThenClaim {
						s.DeleteVolume(volume.Name)
					}
					s.DeleteClaim("claim")
					s.AwaitVolumeGone(volume.Name)
					s.ExpectData(dir, !honor && o == harness.VolumeThenClaim) // upstream's leak, kept with the gate off
				})
			}
		}
	}
}

func TestRetainedOrClaimedPathIsNotDeleted(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	dir := s.Directory()
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath(dir),
		harness.ProvisionedBy(intree.HostPathName))
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	s.DeleteVolume(volume.Name)
	s.PassQueues()
	s.ExpectData(dir, true) // because its claim exists
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
	s.AwaitVolume(volume.Name, "has no finalizer of the plugin",
		func(v *v1.PersistentVolume) bool { return !finalizer.Has(v.Finalizers, finalizer.InTree) })
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	s.PassQueues()
	s.ExpectData(dir, true)
}

func TestInTreeVolumeGetsFinalizerBeforeDeletion(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	dir := s.Directory()
	// The plugin does not delete a symbolic link, so the volume waits.
	link := dir + "-link"
	s.Must(os.Symlink(dir, link), "make link")
	t.Cleanup(func() { _ = os.RemoveAll(link) })
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimRetain, harness.HostPath(link),
		harness.ProvisionedBy(intree.HostPathName))
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	s.DeleteVolume(volume.Name)
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete) // after the deletion no finalizer can be added
	s.DeleteClaim("claim")
	failed := s.AwaitVolume(volume.Name, "has failed",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed })
	if finalizer.Has(failed.Finalizers, finalizer.InTree) || !finalizer.Has(failed.Finalizers,
		finalizer.VolumeProtection) {
		t.Errorf("the volume has the finalizers %v, want pv-protection only", failed.Finalizers)
	}
	s.AwaitEvent(volume, "VolumeFailedDelete")
	s.PassQueues()
	s.ExpectData(dir, true)
	// The retry succeeds and ends the volume.
	s.Must(errors.Join(os.Remove(link), os.Mkdir(link, 0o700)), "replace link")
	s.AwaitVolumeGone(volume.Name)
	s.ExpectData(link, false)
	s.ExpectData(dir, true)
}

func TestPathOutsideHostPathRootIsNeverDeleted(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath("/var/tmp/"+s.Namespace))
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	s.DeleteClaim("claim")
	failed := s.AwaitVolume(volume.Name, "has failed",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed })
	if message := s.AwaitEvent(volume, "VolumeFailedDelete"); message != failed.Status.Message {
		t.Errorf("the event says %q, the status %q", message, failed.Status.Message)
	}
	s.DeleteVolume(volume.Name)
	s.AwaitVolumeGone(volume.Name)
}

func TestHostPathVolumesWithOnePathKeepData(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	dir := s.Directory()
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath(dir))
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	other := s.CreateVolume("below", v1.PersistentVolumeReclaimRetain, harness.HostPath(filepath.Join(dir, "below")))
	s.AwaitVolume(other.Name, "is available",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeAvailable })
	s.DeleteClaim("claim")
	s.AwaitVolume(volume.Name, "is released", harness.IsReleased)
	s.AwaitEvent(volume, "VolumeHandleShared")
	s.PassQueues()
	s.AwaitVolume(volume.Name, "stays released", harness.IsReleased)
	s.ExpectData(filepath.Join(dir, "data"), true)
	s.DeleteVolume(other.Name) // which requeues the waiting volume
	s.AwaitVolumeGone(volume.Name)
	s.ExpectData(dir, false)
}

func TestHostPathInsideBoundVolumeKeepsData(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	dir := s.Directory()
	outer := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath(dir))
	s.CreateClaim("outer", s.Namespace)
	s.AwaitBound("outer")
	below := filepath.Join(dir, "below")
	s.Must(os.Mkdir(below, 0o700), "make directory")
	inner := s.CreateVolume("below", v1.PersistentVolumeReclaimDelete, harness.HostPath(below))
	s.CreateClaim("inner", s.Namespace)
	s.AwaitBound("inner")
	s.DeleteClaim("inner")
	if message := s.AwaitEvent(inner, "VolumeHandleShared"); !strings.Contains(message, outer.Name) {
		t.Errorf("the event says %q", message)
	}
	s.PassQueues()
	s.AwaitVolume(inner.Name, "stays released", harness.IsReleased)
	s.ExpectData(below, true)
	s.DeleteClaim("outer") // both are to be deleted now
	s.AwaitVolumeGone(inner.Name)
	s.AwaitVolumeGone(outer.Name)
	s.ExpectData(dir, false)
}

func TestHostPathAroundLocalVolumeKeepsData(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	dir := s.Directory()
	local := s.CreateVolume("local", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: filepath.Join(dir,
			"below")}}
		v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
				Values: []string{"node"}}},
		}}}}
	})
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath(dir),
		func(v *v1.PersistentVolume) { v.Spec.StorageClassName = s.Namespace + "-around" })
	claim := s.CreateClaim("claim", s.Namespace+"-around")
	s.AwaitBound(claim.Name)
	s.DeleteClaim(claim.Name)
	if message := s.AwaitEvent(volume, "VolumeHandleShared"); !strings.Contains(message, local.Name) {
		t.Errorf("the event says %q", message)
	}
	s.ExpectData(dir, true)
}

func TestHostPathsOfDifferentNodesAreReclaimed(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	dir := s.Directory()
	on := func(node string) func(*v1.PersistentVolume) {
		return func(v *v1.PersistentVolume) {
			v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
					Values: []string{node}}},
			}}}}
		}
	}
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath(dir), on(s.Namespace+"-a"))
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	other := s.CreateVolume("other", v1.PersistentVolumeReclaimDelete, harness.HostPath(dir), on(s.Namespace+"-b"))
	s.AwaitVolume(other.Name, "is available",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeAvailable })
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
}

func TestVolumeOfUnboundClaimIsNotProtectedForever(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	link := s.Directory() + "-link" // a link, which the plugin does not delete
	s.Must(os.Symlink("/nowhere", link), "make link")
	t.Cleanup(func() { _ = os.Remove(link) })
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath(link))
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	s.DeleteClaim("claim")
	s.AwaitVolume(volume.Name, "has failed",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed })
	next := s.CreateClaim("next", "", func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("1Ti") // more than the volume has
	})
	body := fmt.Sprintf(`{"spec":{"claimRef":{"name":"next","uid":%q,"resourceVersion":null}}}`, next.UID)
	_, err := s.Client.CoreV1().PersistentVolumes().Patch(s.Ctx, volume.Name, types.MergePatchType, []byte(body),
		metav1.PatchOptions{})
	s.Must(err, "point the volume to another claim")
	s.DeleteVolume(volume.Name)
	s.AwaitVolumeGone(volume.Name)
}

func TestAvailablePluginVolumeWithFinalizerCanBeDeleted(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	dir := s.Directory()
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath(dir),
		harness.ProvisionedBy(intree.HostPathName))
	s.AwaitVolume(volume.Name, "has the finalizer", func(v *v1.PersistentVolume) bool {
		return finalizer.Has(v.Finalizers, finalizer.InTree) && v.Status.Phase == v1.VolumeAvailable
	})
	s.DeleteVolume(volume.Name)
	s.AwaitVolumeGone(volume.Name)
	s.PassQueues()
	s.ExpectData(dir, true) // the volume had no claim, so there is nothing to reclaim
}

// versions returns every version of the volume until the condition holds.
func versions(s *harness.Session, watcher watch.Interface,
	holds func(*v1.PersistentVolume) bool) []*v1.PersistentVolume {
	s.T.Helper()
	var seen []*v1.PersistentVolume
	for {
		select {
		case event := <-watcher.ResultChan():
			volume, ok := event.Object.(*v1.PersistentVolume)
			if !ok {
				s.T.Fatalf("watch of the volume ended with %+v", event)
			}
			seen = append(seen, volume)
			if holds(volume) {
				return seen
			}
		case <-s.Ctx.Done():
			s.T.Fatalf("waiting for the volume: last versions: %+v", seen)
		}
	}
}

var migrationCases = map[string]struct {
	plugin     string
	source     v1.PersistentVolumeSource
	finalizers []string
	migratedTo string
	want       func(*v1.PersistentVolume) bool
}{
	"migration off replaces external by in-tree": {
		intree.HostPathName, v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/tmp/exeunt-none"}},
		[]string{string(finalizer.External)}, "path.csi.example.com",
		func(v *v1.PersistentVolume) bool {
			return finalizer.Has(v.Finalizers, finalizer.InTree) && !finalizer.Has(v.Finalizers, finalizer.External) &&
				v.Annotations[storage.AnnMigratedTo] == ""
		},
	},
	"migration on removes in-tree": {
		"kubernetes.io/gce-pd", v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}},
		[]string{string(finalizer.InTree), string(finalizer.External)}, "",
		func(v *v1.PersistentVolume) bool {
			return !finalizer.Has(v.Finalizers, finalizer.InTree) && finalizer.Has(v.Finalizers, finalizer.External) &&
				v.Annotations[storage.AnnMigratedTo] == "pd.csi.storage.gke.io"
		},
	},
}

func TestMigrationExchangesFinalizersInOneWrite(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for name, tc := range migrationCases {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, harness.Setup{})
			volume := s.NewVolume("disk", v1.PersistentVolumeReclaimDelete, harness.ProvisionedBy(tc.plugin),
				func(v *v1.PersistentVolume) {
					v.Finalizers, v.Spec.PersistentVolumeSource = tc.finalizers, tc.source
					if tc.migratedTo != "" {
						v.Annotations[storage.AnnMigratedTo] = tc.migratedTo
					}
				})
			watcher, err := s.Client.CoreV1().PersistentVolumes().Watch(s.Ctx,
				metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", volume.Name).String()})
			s.Must(err, "watch volume")
			defer watcher.Stop()
			_, err = s.Client.CoreV1().PersistentVolumes().Create(s.Ctx, volume, metav1.CreateOptions{})
			s.Must(err, "create volume")
			for i, version := range versions(s, watcher, tc.want) {
				guarded := finalizer.Has(version.Finalizers, finalizer.External) ||
					finalizer.Has(version.Finalizers, finalizer.InTree)
				if !guarded {
					t.Errorf("version %d of the volume was without a finalizer: %v", i, version.Finalizers)
				}
			}
			s.AwaitVolume(volume.Name, "is available",
				func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeAvailable })
			if writes := writesTo(s, volume.Name); writes != 1 {
				t.Errorf("the pv-controller wrote the volume's metadata %d times, want once", writes)
			}
		})
	}
}

// writesTo counts the pv-controller's writes to the volume, without its status.
func writesTo(s *harness.Session, volume string) int {
	s.T.Helper()
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	count := 0
	for _, event := range events {
		ours := event.User == sandbox.PVControllerAccount.Name() && event.Resource == "persistentvolumes" &&
			event.Name == volume
		if ours && event.Writes() && event.Subresource == "" && event.Code < 300 {
			count++
		}
	}
	return count
}
