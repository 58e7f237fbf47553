package storage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// hostPaths is a setup whose host-path plugin provisions.
var hostPaths = harness.Setup{ControllerFlags: "--enable-hostpath-provisioner"}

// createHostPathClass creates a class for the host-path plugin.
func createHostPathClass(s *harness.Session, policy v1.PersistentVolumeReclaimPolicy,
	change ...func(*storagev1.StorageClass)) {
	s.T.Helper()
	class := harness.NewClass(s.Namespace, "kubernetes.io/host-path", policy, storagev1.VolumeBindingImmediate)
	for _, f := range change {
		f(&class)
	}
	s.CreateStorageClass(class)
}

func TestPluginVolumeHasFinalizerFromFirstWrite(t *testing.T) {
	harness.Parallel(t, hostPaths)
	for policy, protected := range map[v1.PersistentVolumeReclaimPolicy]bool{v1.PersistentVolumeReclaimDelete: true,
		v1.PersistentVolumeReclaimRetain: false} {
		t.Run(string(policy), func(t *testing.T) {
			s := harness.Join(t, hostPaths)
			seen := watchVolume(s, s.CreateClaim("claim", s.Namespace))
			createHostPathClass(s, policy)
			first := firstWrite(s, seen)
			volume := s.AwaitBound("claim")
			t.Cleanup(func() { _ = os.RemoveAll(volume.Spec.HostPath.Path) })
			if info, err := os.Stat(volume.Spec.HostPath.Path); err != nil || !info.IsDir() {
				t.Errorf("directory %s is missing: %v", volume.Spec.HostPath.Path, err)
			}
			if got := volume.Annotations[storage.AnnDynamicallyProvisioned]; got != "kubernetes.io/host-path" {
				t.Errorf("the volume is annotated as provisioned by %q", got)
			}
			if got := finalizer.Has(first.Finalizers, finalizer.InTree); got != protected {
				t.Errorf("finalizer in the first write: %v, want %v", got, protected)
			}
			claim := s.AwaitClaim("claim", "is bound",
				func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimBound })
			if want := []string{string(finalizer.ClaimProtection)}; !slices.Equal(claim.Finalizers, want) {
				t.Errorf("the claim has the finalizers %v, want %v", claim.Finalizers, want)
			}
			if got := claim.Annotations[storage.AnnStorageProvisioner]; got != "kubernetes.io/host-path" {
				t.Errorf("the claim is annotated with provisioner %q", got)
			}
			s.AwaitEvent(claim, "ProvisioningSucceeded")
		})
	}
}

// watchVolume watches the future volume of the claim.
func watchVolume(s *harness.Session, claim *v1.PersistentVolumeClaim) watch.Interface {
	s.T.Helper()
	seen, err := s.Client.CoreV1().PersistentVolumes().Watch(s.Ctx,
		metav1.SingleObject(metav1.ObjectMeta{Name: binding.ProvisionedName(claim)}))
	s.Must(err, "watch volume")
	s.T.Cleanup(seen.Stop)
	return seen
}

// firstWrite returns the first version of the volume.
func firstWrite(s *harness.Session, seen watch.Interface) *v1.PersistentVolume {
	s.T.Helper()
	select {
	case event := <-seen.ResultChan():
		if volume, ok := event.Object.(*v1.PersistentVolume); ok && event.Type == watch.Added {
			return volume
		}
		s.T.Fatalf("the first event of the volume is %v", event)
	case <-s.Ctx.Done():
		s.T.Fatal("no volume was created")
	}
	return nil
}

func TestFailedPluginProvisioningLeavesNothing(t *testing.T) {
	harness.Parallel(t, hostPaths)
	for name, tc := range map[string]struct {
		change func(*storagev1.StorageClass)
		claim  func(*v1.PersistentVolumeClaim)
		says   string
	}{
		"mount options": {change: func(c *storagev1.StorageClass) { c.MountOptions = []string{"ro"} }, says: "mount options"},
		"data source": {claim: func(c *v1.PersistentVolumeClaim) {
			c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "other"}
		}, says: "datasource"},
		"block volume": {claim: func(c *v1.PersistentVolumeClaim) {
			block := v1.PersistentVolumeBlock
			c.Spec.VolumeMode = &block
		}, says: "block"},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, hostPaths)
			createHostPathClass(s, v1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) {
				if tc.change != nil {
					tc.change(c)
				}
			})
			claim := s.CreateClaim("claim", s.Namespace, func(c *v1.PersistentVolumeClaim) {
				if tc.claim != nil {
					tc.claim(c)
				}
			})
			if message := s.AwaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, tc.says) {
				t.Errorf("the event does not say %q: %s", tc.says, message)
			}
			s.DeleteClaim("claim")
			s.AwaitClaimGone("claim")
			expectNoDirectory(s, claim)
		})
	}
}

func expectNoDirectory(s *harness.Session, claim *v1.PersistentVolumeClaim) {
	s.T.Helper()
	left, err := filepath.Glob(filepath.Join("/tmp", "*", binding.ProvisionedName(claim)))
	s.Must(err, "list directories")
	if len(left) > 0 {
		s.T.Errorf("left behind: %v", left)
	}
}

// recordUnfinished creates the PersistentVolume of a pv-controller that crashed before
// it called the plugin. It returns the directory that the plugin creates.
func recordUnfinished(s *harness.Session, claim *v1.PersistentVolumeClaim) string {
	s.T.Helper()
	path := filepath.Join("/tmp", "hostpath_pv", binding.ProvisionedName(claim))
	s.T.Cleanup(func() { _ = os.RemoveAll(path) })
	s.CreateVolume("unfinished", v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Name, v.Spec.StorageClassName = binding.ProvisionedName(claim), s.Namespace
		v.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/host-path",
			storage.AnnBoundByController: "yes"}
		v.Finalizers = []string{string(finalizer.InTree)}
		v.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
			UID: claim.UID}
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}}
	})
	return path
}

func TestUnfinishedPluginVolumeIsFinishedBeforeBinding(t *testing.T) {
	s := harness.Join(t, hostPaths)
	claim := s.CreateClaim("claim", s.Namespace) // a class that does not exist
	path := recordUnfinished(s, claim)
	if volume := s.AwaitBound("claim"); volume.Name != binding.ProvisionedName(claim) {
		t.Errorf("the claim is bound to %s", volume.Name)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Errorf("the claim is bound, and directory %s is missing: %v", path, err)
	}
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(binding.ProvisionedName(claim))
	expectNoDirectory(s, claim)
}

func TestUnfinishedPluginVolumeGoesWithItsClaim(t *testing.T) {
	s := harness.Join(t, hostPaths)
	claim := s.CreateClaim("claim", s.Namespace)
	s.DeleteClaim("claim")
	s.AwaitClaimGone("claim")
	path := recordUnfinished(s, claim)
	s.Must(os.MkdirAll(path, 0o750), "make directory")
	s.AwaitVolumeGone(binding.ProvisionedName(claim))
	expectNoDirectory(s, claim)
}

func TestNameConflictIsNotBound(t *testing.T) {
	s := harness.Join(t, hostPaths)
	claim := s.CreateClaim("claim", s.Namespace) // whose class is created later
	other := s.CreateVolume("other", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Name, v.Spec.StorageClassName = binding.ProvisionedName(claim), "another"
	})
	createHostPathClass(s, v1.PersistentVolumeReclaimDelete)
	if message := s.AwaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, "not found") &&
		!strings.Contains(message, other.Name) {
		t.Errorf("the event does not name the other volume: %s", message)
	}
	s.DeleteVolume(other.Name)
	volume := s.AwaitBound("claim")
	t.Cleanup(func() { _ = os.RemoveAll(volume.Spec.HostPath.Path) })
}
