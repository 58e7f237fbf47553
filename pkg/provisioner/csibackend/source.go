package csibackend

import (
	"context"
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/storage"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// source reads the data source of the volume live and protects the source with a finalizer.
// The claim is in the cache: a removal of the finalizer that began before the cache had the
// claim ends before the read, and none begins later.
func (i *Inputs) source(ctx context.Context, in provision.Input,
	source storage.DataSource) (*spec.VolumeContentSource, error) {
	switch source.Kind {
	case storage.SourceClaim:
		return i.cloneOf(ctx, in, source.Name)
	case storage.SourceSnapshot:
		return i.restored(ctx, in, source.Name)
	case storage.SourceNone, storage.SourceOther:
	}
	return nil, nil
}

func (i *Inputs) cloneOf(ctx context.Context, in provision.Input, name string) (*spec.VolumeContentSource, error) {
	i.CloneSources.AwaitRemoval(in.Claim.Namespace + "/" + name)
	origin, err := controller.ReadLive(ctx, "claim", name, i.Client.CoreV1().PersistentVolumeClaims(in.Claim.Namespace).
		Get)
	if err != nil {
		return nil, err
	}
	volume, err := i.volumeOf(ctx, origin)
	if err != nil {
		return nil, err
	}
	content, err := provision.FromClaim(in.Claim, origin, volume, in.Driver.Name)
	if err != nil {
		return nil, err
	}
	switch {
	case in.Claim.DeletionTimestamp != nil: // nothing new is made from it
		return content, nil
	case i.Reaches != nil && !i.Reaches(volume):
		return nil, &provision.UnsuitableNode{Sentence: fmt.Sprintf("The selected node %s does not reach the volume %s of the source claim %s",
			in.Claim.Annotations[storage.AnnSelectedNode], volume.Name, origin.Name)}
	}
	return content, i.CloneSources.Protect(ctx, origin)
}

// ReachesSource reports whether the served node reaches the volume that the claim is a clone of. A source that cannot be
// cloned yet counts as reached: the provisioner of the selected node says what it lacks.
func (i *Inputs) ReachesSource(ctx context.Context, claim *v1.PersistentVolumeClaim) (bool, error) {
	refs := storage.DataSourceRefs(claim)
	if i.Reaches == nil || len(refs) == 0 {
		return true, nil
	}
	source := storage.DataSourceOf(refs[0])
	if source.Kind != storage.SourceClaim || source.Namespace != claim.Namespace || source.Name == "" {
		return true, nil
	}
	origin, err := controller.ReadLive(ctx, "claim", source.Name,
		i.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get)
	if err != nil {
		return false, err
	}
	volume, err := i.volumeOf(ctx, origin)
	return volume == nil || i.Reaches(volume), err
}

// volumeOf returns the volume of a claim in CSI terms, nil if there is none.
func (i *Inputs) volumeOf(ctx context.Context, claim *v1.PersistentVolumeClaim) (*v1.PersistentVolume, error) {
	if claim == nil || claim.Spec.VolumeName == "" {
		return nil, nil
	}
	volume, err := controller.ReadLive(ctx, "volume", claim.Spec.VolumeName, i.Client.CoreV1().PersistentVolumes().Get)
	if volume == nil || err != nil || volume.Spec.CSI != nil {
		return volume, err
	}
	translated, err := i.Translator.Volume(volume)
	if err != nil {
		return nil, fmt.Errorf("translate volume of claim %s: %w", claim.Name, err)
	}
	return translated, nil
}

func (i *Inputs) restored(ctx context.Context, in provision.Input, name string) (*spec.VolumeContentSource, error) {
	snapshots := i.Snapshots.SnapshotV1()
	i.SnapshotSources.AwaitRemoval(in.Claim.Namespace + "/" + name)
	snapshot, err := controller.ReadLive(ctx, "VolumeSnapshot", name, snapshots.VolumeSnapshots(in.Claim.Namespace).Get)
	if err != nil {
		return nil, err
	}
	state := snapshotState(snapshot)
	if contentName := contentOf(snapshot); contentName != "" {
		content, err := controller.ReadLive(ctx, "VolumeSnapshotContent", contentName, snapshots.VolumeSnapshotContents().Get)
		if err != nil {
			return nil, err
		}
		state.Content = contentState(snapshot, content)
	}
	source, err := provision.FromSnapshot(in.Claim, state, in.Driver.Name, in.Settings.KeepMode)
	if err != nil {
		return nil, err
	}
	if in.Claim.DeletionTimestamp != nil {
		return source, nil
	}
	return source, i.SnapshotSources.Protect(ctx, snapshot)
}

func snapshotState(snapshot *snapshotv1.VolumeSnapshot) *provision.SnapshotState {
	if snapshot == nil {
		return nil
	}
	state := &provision.SnapshotState{
		Name: snapshot.Name, Deleting: snapshot.DeletionTimestamp != nil,
		Protected: finalizer.Has(snapshot.Finalizers, finalizer.SnapshotSource),
	}
	if status := snapshot.Status; status != nil {
		state.Ready = status.ReadyToUse != nil && *status.ReadyToUse
		state.RestoreSize = status.RestoreSize
	}
	return state
}

// contentOf names the VolumeSnapshotContent that a snapshot is bound to, "" for none.
func contentOf(snapshot *snapshotv1.VolumeSnapshot) string {
	if snapshot == nil || snapshot.Status == nil || snapshot.Status.BoundVolumeSnapshotContentName == nil {
		return ""
	}
	return *snapshot.Status.BoundVolumeSnapshotContentName
}

func contentState(snapshot *snapshotv1.VolumeSnapshot,
	content *snapshotv1.VolumeSnapshotContent) *provision.SnapshotContent {
	if content == nil {
		return nil
	}
	back := content.Spec.VolumeSnapshotRef
	state := &provision.SnapshotContent{
		Name: content.Name, Driver: content.Spec.Driver,
		Mutual:          back.UID == snapshot.UID && back.Namespace == snapshot.Namespace && back.Name == snapshot.Name,
		Mode:            content.Spec.SourceVolumeMode,
		AllowModeChange: content.Annotations[provision.AllowModeChange],
	}
	if content.Status != nil && content.Status.SnapshotHandle != nil {
		state.Handle = *content.Status.SnapshotHandle
	}
	return state
}
