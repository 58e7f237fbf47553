package pvwriter

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

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
func (w *Writer) SetClaimRef(ctx context.Context, volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim, choice Choice) (*v1.PersistentVolume, error) {
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
