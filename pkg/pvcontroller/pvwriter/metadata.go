package pvwriter

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Metadata is the change of the fields that say which component reclaims a volume:
// the in-tree finalizer, the external one, and the annotation migrated-to.
type Metadata struct {
	plugin.MetadataChange
	// Driver is the CSI driver that replaced the in-tree plugin, the value of
	// migrated-to.
	Driver string
}

// SetMetadata writes the change in one patch. A removal tests the whole version, as
// its decision used the policy, the phase and the claim.
func (w *Writer) SetMetadata(ctx context.Context, volume *v1.PersistentVolume, metadata Metadata) (*v1.PersistentVolume, error) {
	var finalizers finalizer.Change
	if metadata.AddInTree {
		finalizers.Add = append(finalizers.Add, finalizer.InTree)
	}
	if metadata.RemoveInTree {
		finalizers.Remove = append(finalizers.Remove, finalizer.InTree)
	}
	if metadata.RemoveExternal {
		finalizers.Remove = append(finalizers.Remove, finalizer.External)
	}
	change := patch.For(volume)
	if len(finalizers.Remove) > 0 {
		change = patch.ForVersion(volume)
	}
	finalizer.Edit(change, volume, finalizers)
	if metadata.SetMigrated {
		change.Annotate(volume, map[string]string{storage.AnnMigratedTo: metadata.Driver})
	}
	if metadata.RemoveMigrated {
		change.Remove("/metadata/annotations/" + patch.Escape(storage.AnnMigratedTo))
	}
	return w.writer.PatchVolume(ctx, volume, change)
}

// RemoveReclaimFinalizers removes the finalizers that kept the volume until its in-tree
// plugin deleted the data.
func (w *Writer) RemoveReclaimFinalizers(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	change := finalizer.Change{Remove: []finalizer.Name{finalizer.InTree, finalizer.External}}
	return w.writer.PatchVolume(ctx, volume, finalizer.Edit(patch.For(volume).TestDeletion(volume), volume, change))
}
