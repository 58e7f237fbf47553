package pvwriter_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvwriter"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// write is one write of a volume as a reconciler observed it.
type write func(*testing.T, *pvwriter.Writer, *v1.PersistentVolume) error

// cached returns the volume as the cache shows it.
func cached(finalizers ...finalizer.Name) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "uid-1", ResourceVersion: "7",
			Annotations: map[string]string{storage.AnnBoundByController: "yes"}},
		Spec:   v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "shop", Name: "data", UID: "uid-2"}},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable},
	}
	for _, name := range finalizers {
		volume.Finalizers = append(volume.Finalizers, string(name))
	}
	return volume
}

func wasBound(volume *v1.PersistentVolume) *v1.PersistentVolume {
	volume.Status.Phase = v1.VolumeBound
	return volume
}

func inDeletion(volume *v1.PersistentVolume) *v1.PersistentVolume {
	volume.DeletionTimestamp = new(metav1.Now())
	return volume
}

func setClaimRef(t *testing.T, w *pvwriter.Writer, volume *v1.PersistentVolume) error {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "uid-2"}}
	_, err := w.SetClaimRef(t.Context(), volume, claim, pvwriter.ChosenByPerson)
	return err
}

func clearClaimRef(t *testing.T, w *pvwriter.Writer, volume *v1.PersistentVolume) error {
	_, err := w.ClearClaimRef(t.Context(), volume)
	return err
}

func setMetadata(change plugin.MetadataChange) write {
	return func(t *testing.T, w *pvwriter.Writer, volume *v1.PersistentVolume) error {
		_, err := w.SetMetadata(t.Context(), volume, pvwriter.Metadata{MetadataChange: change})
		return err
	}
}

func removeReclaimFinalizers(t *testing.T, w *pvwriter.Writer, volume *v1.PersistentVolume) error {
	_, err := w.RemoveReclaimFinalizers(t.Context(), volume)
	return err
}

func setPhase(change pvwriter.PhaseChange) write {
	return func(t *testing.T, w *pvwriter.Writer, volume *v1.PersistentVolume) error {
		_, err := w.SetPhase(t.Context(), volume, change)
		return err
	}
}

func addProtection(t *testing.T, w *pvwriter.Writer, volume *v1.PersistentVolume) error {
	_, err := w.AddProtection(t.Context(), volume)
	return err
}

func removeProtection(t *testing.T, w *pvwriter.Writer, volume *v1.PersistentVolume) error {
	_, err := w.RemoveProtection(t.Context(), volume)
	return err
}

// What happens to the volume between the decision and the write. The version changes only in
// the last case, so that each test of a patch shows alone.
var changes = map[string]func(*v1.PersistentVolume){
	"none":          func(*v1.PersistentVolume) {},
	"another UID":   func(v *v1.PersistentVolume) { v.UID = "uid-9" },
	"another phase": func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeFailed },
	"another claim": func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "uid-9" },
	"restored":      func(v *v1.PersistentVolume) { v.DeletionTimestamp = nil },
	"new version":   func(v *v1.PersistentVolume) { v.ResourceVersion = "8" },
}

// TestWriteOfChangedVolumeIsRefused: no write overwrites what its decision did not see.
func TestWriteOfChangedVolumeIsRefused(t *testing.T) {
	released := pvwriter.PhaseChange{Phase: v1.VolumeReleased}
	protected, inTree, external := finalizer.VolumeProtection, finalizer.InTree, finalizer.External
	for name, tc := range map[string]struct {
		write   write
		volume  *v1.PersistentVolume
		refused []string
	}{
		"set claimRef":          {setClaimRef, cached(), []string{"another UID", "new version"}},
		"clear claimRef":        {clearClaimRef, cached(), []string{"another UID", "new version"}},
		"add in-tree finalizer": {setMetadata(plugin.MetadataChange{AddInTree: true}), cached(protected), []string{"another UID"}},
		"remove in-tree finalizer": {setMetadata(plugin.MetadataChange{RemoveInTree: true}),
			cached(inTree), []string{"another UID", "new version"}},
		"remove external finalizer": {setMetadata(plugin.MetadataChange{RemoveExternal: true}),
			cached(external), []string{"another UID", "new version"}},
		"reclaimed": {removeReclaimFinalizers, inDeletion(cached(inTree)), []string{"another UID", "restored"}},
		"release, remove protection": {setPhase(pvwriter.PhaseChange{Phase: v1.VolumeReleased,
			RemoveProtection: true}), inDeletion(wasBound(cached(protected, external))), []string{"another UID", "another phase", "another claim", "restored"}},
		"remove protection of a deleted volume": {removeProtection, inDeletion(cached(protected, external)),
			[]string{"another UID", "another phase", "restored"}},
		"set phase Released":   {setPhase(released), wasBound(cached()), []string{"another UID", "another phase", "another claim"}},
		"release, never Bound": {setPhase(released), cached(), []string{"another UID", "another phase", "new version"}},
		"set phase Bound": {setPhase(pvwriter.PhaseChange{Phase: v1.VolumeBound}), cached(),
			[]string{"another UID", "another phase", "new version"}},
		"add protection": {addProtection, cached(external), []string{"another UID", "another phase"}},
		"remove protection, volume kept by its driver":    {removeProtection, cached(protected, external), []string{"another UID", "another phase"}},
		"remove protection, volume kept by a plugin":      {removeProtection, cached(protected, inTree), []string{"another UID", "another phase"}},
		"remove protection, volume not kept by reclaimer": {removeProtection, cached(protected), []string{"another UID", "another phase", "new version"}},
	} {
		t.Run(name, func(t *testing.T) {
			refusals := map[string]bool{}
			for _, change := range tc.refused {
				refusals[change] = true
			}
			for change, apply := range changes {
				live := tc.volume.DeepCopy()
				apply(live)
				w := pvwriter.New(fake.NewClientset(live), controller.NewVersions())
				if err := tc.write(t, w, tc.volume); (err != nil) != refusals[change] {
					t.Errorf("change: %s: refused: %v, want %v", change, err, refusals[change])
				}
			}
		})
	}
}

func TestDeletionNamesObservedVersion(t *testing.T) {
	volume := cached()
	client := fake.NewClientset(volume)
	if _, err := pvwriter.New(client, controller.NewVersions()).DeleteObject(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	sent := client.Actions()[0].(kubetesting.DeleteAction).GetDeleteOptions().Preconditions
	if sent == nil || sent.UID == nil || *sent.UID != "uid-1" || sent.ResourceVersion == nil ||
		*sent.ResourceVersion != "7" {
		t.Errorf("preconditions %v, want UID and version of the volume", sent)
	}
}
