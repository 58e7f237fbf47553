package pvwriter

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Writer writes PersistentVolumes with one client. Its methods return the volume as the
// API server returned it.
type Writer struct {
	client   kubernetes.Interface
	versions *controller.Versions
	writer   *controller.Writer
}

// New returns a writer that records the versions it wrote.
func New(client kubernetes.Interface, versions *controller.Versions) *Writer {
	return &Writer{client: client, versions: versions, writer: controller.NewWriter(client, versions)}
}

// DeleteObject deletes this version of the PersistentVolume: another version may refer
// to another claim. It returns the volume as a read shows it afterwards, nil if it is gone: the answer to the
// deletion proves nothing.
func (w *Writer) DeleteObject(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID,
		ResourceVersion: &volume.ResourceVersion}}
	volumes := w.client.CoreV1().PersistentVolumes()
	err := controller.CheckRefusal(ctx, volumes.Delete(ctx, volume.Name, options), "volume", volume, volumes.Get)
	switch {
	case errors.Is(err, controller.ErrGone):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("delete volume object %s: %w", volume.Name, err)
	}
	w.versions.ExpectChange(volume)
	now, err := controller.LiveVolume(ctx, w.client, volume)
	if err == nil && now != nil && now.DeletionTimestamp == nil {
		return nil, fmt.Errorf("delete volume object %s: the API server answers with success, but the object is not being deleted", volume.Name)
	}
	return now, err
}

// PhaseChange is the content of one write of a volume's phase.
type PhaseChange struct {
	Phase v1.PersistentVolumePhase
	// Message explains the phase Failed; "" for other phases.
	Message string
	// RemoveProtection: the same write removes the finalizer pv-protection.
	RemoveProtection bool
}

// SetPhase writes status.phase and status.message. The write fails as stale if phase,
// claim or finalizers changed meanwhile. It fails if anything changed if the volume refers to no
// claim of a UID, so that a claim that it gets meanwhile is seen, for the phase Bound, and for
// Released of a volume that was never Bound: a volume that a user deletes meanwhile could get no
// finalizer any more, and its data would leak. A volume that becomes Bound again gets back
// pv-protection in the same write.
func (w *Writer) SetPhase(ctx context.Context, volume *v1.PersistentVolume,
	phase PhaseChange) (*v1.PersistentVolume, error) {
	change := controller.RequirePhase(patch.For(volume), volume)
	switch ref := volume.Spec.ClaimRef; {
	case ref == nil, ref.UID == "", phase.Phase == v1.VolumeBound, phase.Phase == v1.VolumeReleased &&
		volume.Status.Phase != v1.VolumeBound:
		change.Test("/metadata/resourceVersion", volume.ResourceVersion)
	default:
		change.Test("/spec/claimRef/uid", string(ref.UID))
	}
	change.Set("/status/phase", string(phase.Phase))
	if volume.Status.Message != phase.Message {
		change.Set("/status/message", phase.Message)
	}
	switch {
	case phase.RemoveProtection:
		removeProtection(change, volume)
	case phase.Phase == v1.VolumeBound && volume.DeletionTimestamp == nil:
		addProtection(change, volume)
	}
	return w.writer.PatchVolume(ctx, volume, change, "status")
}

// Provisioned is a volume that an in-tree plugin provisions for a claim.
type Provisioned struct {
	// Volume is the PersistentVolume as the plugin describes it. Create completes it.
	Volume *v1.PersistentVolume
	Claim  *v1.PersistentVolumeClaim
	// Plugin is the name of the plugin.
	Plugin string
	// Finalizers are present from the first write on, so that the volume never exists
	// without them.
	Finalizers []string
}

// Create creates the PersistentVolume of a volume that does not exist yet. It returns
// [controller.ErrStaleCache] if the name is in use.
func (w *Writer) Create(ctx context.Context, provisioned Provisioned) (*v1.PersistentVolume, error) {
	volume, claim := provisioned.Volume, provisioned.Claim
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, storage.AnnBoundByController, yes)
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, storage.AnnDynamicallyProvisioned, provisioned.Plugin)
	volume.Finalizers = provisioned.Finalizers
	volume.Spec.StorageClassName = storage.ClaimClass(claim)
	volume.Spec.ClaimRef = referenceTo(claim)
	created, err := w.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err) && w.exists(ctx, volume.Name):
		return nil, controller.ErrStaleCache
	case err != nil:
		return nil, fmt.Errorf("error creating provisioned PV object for claim %s: %w", controller.Key(claim), err)
	}
	w.versions.ExpectChange(claim)
	return created, nil
}

// exists reports whether a read shows a PersistentVolume of the name. The answer to a write may be that of an admission
// webhook.
func (w *Writer) exists(ctx context.Context, name string) bool {
	_, found, err := answer.Get(ctx, name, w.client.CoreV1().PersistentVolumes().Get)
	return found || err != nil
}

const yes = "yes"

// Choice tells who chose the volume for a claim.
type Choice int

const (
	// ChosenByPerson: a person reserved the volume for the claim.
	ChosenByPerson Choice = iota
	// ChosenByController: the volume referred to no claim.
	ChosenByController
)

// String returns the name of the choice.
func (c Choice) String() string { return enum.Name(c, "ChosenByPerson", "ChosenByController") }

// SetClaimRef sets spec.claimRef to the claim, with the annotation bound-by-controller on a
// volume that the controller chose.
func (w *Writer) SetClaimRef(ctx context.Context, volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim,
	choice Choice) (*v1.PersistentVolume, error) {
	change := patch.ForVersion(volume).Set("/spec/claimRef", referenceTo(claim))
	if choice == ChosenByController {
		change.Annotate(volume, map[string]string{storage.AnnBoundByController: yes})
	}
	return w.writer.PatchVolume(ctx, volume, change)
}

// ClearClaimRef removes spec.claimRef if a controller chose the claim. Otherwise only the
// UID is removed, and the volume stays reserved for the name of the claim.
func (w *Writer) ClearClaimRef(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	change := patch.ForVersion(volume)
	if _, byController := volume.Annotations[storage.AnnBoundByController]; byController {
		change.Remove("/spec/claimRef").Remove("/metadata/annotations/" + patch.Escape(storage.AnnBoundByController))
	} else {
		change.Remove("/spec/claimRef/uid")
	}
	return w.writer.PatchVolume(ctx, volume, change)
}

func referenceTo(claim *v1.PersistentVolumeClaim) *v1.ObjectReference {
	return &v1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
}

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
func (w *Writer) SetMetadata(ctx context.Context, volume *v1.PersistentVolume,
	metadata Metadata) (*v1.PersistentVolume, error) {
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
func (w *Writer) RemoveReclaimFinalizers(ctx context.Context,
	volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	change := finalizer.Change{Remove: []finalizer.Name{finalizer.InTree, finalizer.External}}
	return w.writer.PatchVolume(ctx, volume, finalizer.Edit(patch.For(volume).TestDeletion(volume), volume, change))
}
