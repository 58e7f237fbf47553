package pvwriter

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

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
	return created, nil
}

// exists reports whether a read shows a PersistentVolume of the name. The answer to a write may be that of an admission
// webhook.
func (w *Writer) exists(ctx context.Context, name string) bool {
	_, found, err := answer.Get(ctx, name, w.client.CoreV1().PersistentVolumes().Get)
	return found || err != nil
}
