package claim

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/volume"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// carrying is a claim with the finalizers that older versions left.
func carrying(c *v1.PersistentVolumeClaim) {
	c.Finalizers = []string{"kubernetes.io/pvc-protection", string(finalizer.Provisioning)}
}

func deleted(c *v1.PersistentVolumeClaim) {
	now := metav1.Now()
	c.DeletionTimestamp = &now
}

// With the gate on and off, for a claim in any state, whoever serves it.
func TestOldFinalizerGoesWhereOwnPluginServesClaim(t *testing.T) {
	local := class(intree.HostPathName, storagev1.VolumeBindingImmediate)
	for name, tc := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		goes  bool
	}{
		"pending":                      {pendingClaim(ofClass("class"), carrying, annotated(storage.AnnStorageProvisioner, intree.HostPathName)), true},
		"deleted while pending":        {pendingClaim(ofClass("class"), carrying, deleted, annotated(storage.AnnStorageProvisioner, intree.HostPathName)), true},
		"lost":                         {pendingClaim(ofClass("class"), carrying, naming("v"), boundOnce, annotated(storage.AnnStorageProvisioner, intree.HostPathName)), true},
		"served by a driver":           {pendingClaim(ofClass("class"), carrying, deleted, annotated(storage.AnnStorageProvisioner, "example.com/driver")), false},
		"served by a migrated plugin":  {pendingClaim(ofClass("class"), carrying, deleted, annotated(storage.AnnStorageProvisioner, "kubernetes.io/gce-pd")), false},
		"no provisioner was requested": {pendingClaim(carrying, deleted), false},
	} {
		for _, honor := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				c, _ := stage(t, tc.claim.DeepCopy(), local)
				c.Honor = honor
				now := reconcile(t, c)
				if got := !finalizer.Has(now.Finalizers, finalizer.Provisioning); got != tc.goes {
					t.Errorf("the finalizers are %v; gone: %v, want %v", now.Finalizers, got, tc.goes)
				}
				if !finalizer.Has(now.Finalizers, finalizer.ClaimProtection) {
					t.Errorf("the finalizers of others are gone: %v", now.Finalizers)
				}
			})
		}
	}
}

func TestNoFinalizerIsAddedToClaims(t *testing.T) {
	for _, provisioner := range []string{intree.HostPathName, "example.com/driver", "kubernetes.io/gce-pd"} {
		t.Run(provisioner, func(t *testing.T) {
			made := free("made", "1", referringTo("other", "other"))
			made.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: provisioner, "exeunt.io/holds-claims": "other"}
			c, _ := stage(t, pendingClaim(ofClass("class")), class(provisioner, storagev1.VolumeBindingImmediate), made)
			c.volumeChanged(nil, made)
			if claim := reconcile(t, c); len(claim.Finalizers) > 0 || claim.Annotations[storage.AnnStorageProvisioner] == "" {
				t.Errorf("finalizers %v, annotations %v", claim.Finalizers, claim.Annotations)
			}
		})
	}
}

// crashing is the host-path plugin; the process ends before or after its work.
type crashing struct {
	*intree.HostPath
	before, after bool
}

var errCrash = errors.New("the process ends")

func (p *crashing) Create(ctx context.Context, volume *v1.PersistentVolume) error {
	if p.before {
		return errCrash
	}
	err := p.HostPath.Create(ctx, volume)
	if p.after {
		return errCrash
	}
	return err
}

// A restart after a crash at any point serves the claim, or leaves nothing behind if
// the claim was deleted meanwhile.
func TestCrashWhileProvisioningLeaksNoDirectory(t *testing.T) {
	for name, crash := range map[string]crashing{"recorded only": {before: true}, "created": {after: true}} {
		for _, gone := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				root, crash := t.TempDir(), crash
				crash.HostPath = &intree.HostPath{Root: root, Provisions: true}
				c, _ := stageWith(t, &crash, class(intree.HostPathName, storagev1.VolumeBindingImmediate), pendingClaim(ofClass("class")))
				reconcile(t, c)
				if err := c.Provision(t.Context(), "ns/claim"); !errors.Is(err, errCrash) {
					t.Fatalf("Provision returns %v", err)
				}
				if claim := reconcile(t, c); claim.Spec.VolumeName != "" {
					t.Errorf("the claim is bound to the unfinished volume %s", claim.Spec.VolumeName)
				}
				crash.before, crash.after = false, false
				if gone {
					expectReclaimed(t, c, root)
					return
				}
				if err := c.Provision(t.Context(), "ns/claim"); err != nil {
					t.Fatal(err)
				}
				for range 2 { // the first shows the cache the phase
					reconcile(t, c)
				}
				if claim := reconcile(t, c); claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName != "pvc-claim" {
					t.Errorf("the claim is %s, bound to %q", claim.Status.Phase, claim.Spec.VolumeName)
				}
				if _, err := os.Stat(filepath.Join(root, "hostpath_pv", "pvc-claim")); err != nil {
					t.Errorf("the claim is bound to nothing: %v", err)
				}
			})
		}
	}
}

// expectReclaimed deletes the claim, and wants volume and directory to go.
func expectReclaimed(t *testing.T, c *Controller, root string) {
	t.Helper()
	ctx := t.Context()
	if err := c.Client.CoreV1().PersistentVolumeClaims("ns").Delete(ctx, "claim", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Caches.Claims.GetStore().Delete(pendingClaim()); err != nil {
		t.Fatal(err)
	}
	volumes, err := volume.New(volume.Config{
		Client: c.Client, Caches: c.Caches, Versions: controller.NewVersions(), Reporter: controller.NewReporter(&told{}),
		Plugins: c.Plugins, Operations: c.Operations, WakeClaim: func(string) {}, Honor: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, work := range []func(context.Context, string) error{volumes.Reconcile, volumes.Reclaim} {
		if err := work(ctx, "pvc-claim"); err != nil {
			t.Fatal(err)
		}
		if now, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, "pvc-claim", metav1.GetOptions{}); err == nil {
			if err := c.Caches.Volumes.GetStore().Update(now); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(root, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	list, err := c.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil || slices.ContainsFunc(list.Items, func(v v1.PersistentVolume) bool { return v.DeletionTimestamp == nil }) {
		t.Errorf("volumes %v (%v)", list.Items, err)
	}
}

func TestPluginVolumeThatDoesNotFitIsReportedOnce(t *testing.T) {
	gold := "gold" // an attributes class, of which the plugin knows nothing
	claim := pendingClaim(ofClass("class"), func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &gold })
	c, events := stage(t, claim, class(intree.HostPathName, storagev1.VolumeBindingImmediate))
	for range 3 {
		reconcile(t, c)
		if err := c.Provision(t.Context(), "ns/claim"); err != nil {
			t.Fatal(err)
		}
	}
	if now := reconcile(t, c); now.Spec.VolumeName != "" || c.Caches.Volume("pvc-claim").Status.Phase != v1.VolumePending {
		t.Errorf("the claim is bound to %q, the volume is %s", now.Spec.VolumeName, c.Caches.Volume("pvc-claim").Status.Phase)
	}
	if want := []string{"*v1.PersistentVolumeClaim claim: Normal ProvisioningSucceeded"}; !slices.Equal(events.events, want) {
		t.Errorf("reported %q, want %q", events.events, want)
	}
}

func TestPassEndsThoughWebhookUndoesWrites(t *testing.T) {
	claim := pendingClaim(ofClass("class"))
	c, _ := stage(t, claim, class("csi.example.com", storagev1.VolumeBindingImmediate))
	patches := 0
	c.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		patches++
		return patches < 1000, claim.DeepCopy(), nil
	})
	if err := c.Reconcile(t.Context(), "ns/claim"); !errors.Is(err, controller.ErrTooManySteps) || patches > controller.MaxSteps {
		t.Errorf("%d patches in one pass, error %v", patches, err)
	}
}

// The volume of a plugin that was given to a claim by hand is bound as it is.
func TestExistingPluginVolumeIsBoundWithoutProvisioning(t *testing.T) {
	made := free("pvc-former", "1", inClass("class"))
	made.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: intree.HostPathName}
	c, _ := stage(t, pendingClaim(ofClass("class")), class(intree.HostPathName, storagev1.VolumeBindingImmediate), made)
	if claim := reconcile(t, c); claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName != "pvc-former" {
		t.Errorf("the claim is %s, bound to %q", claim.Status.Phase, claim.Spec.VolumeName)
	}
}
