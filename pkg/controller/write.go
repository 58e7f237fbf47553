package controller

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

// Writer sends patches of claims and volumes and remembers their versions.
type Writer struct {
	client   kubernetes.Interface
	versions *Versions
	claims   *UpdateFallback
}

// NewWriter returns a writer that records its writes in versions.
func NewWriter(client kubernetes.Interface, versions *Versions) *Writer {
	return &Writer{client: client, versions: versions, claims: NewUpdateFallback(client.CoreV1().RESTClient(), v1.Resource("persistentvolumeclaims"))}
}

// RequirePhase lets the patch fail unless the volume is in the phase that was observed. A
// phase that somebody has cleared is absent in JSON, where no test finds it: such a
// patch rests on the version instead.
func RequirePhase(change *patch.Patch, volume *v1.PersistentVolume) *patch.Patch {
	if volume.Status.Phase == "" {
		return change.Test("/metadata/resourceVersion", volume.ResourceVersion)
	}
	return change.Test("/status/phase", string(volume.Status.Phase))
}

// Volume patches a volume and returns it as it is now. Subresource is "" or
// "status". An empty patch is not sent.
func (w *Writer) PatchVolume(ctx context.Context, volume *v1.PersistentVolume, p *patch.Patch, subresource ...string) (*v1.PersistentVolume, error) {
	if p.Empty() {
		return volume, nil
	}
	body, err := p.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encode patch of volume %s: %w", volume.Name, err)
	}
	now, err := w.client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.JSONPatchType, body, metav1.PatchOptions{}, subresource...)
	if err != nil {
		return nil, fmt.Errorf("patch volume %s: %w", volume.Name, err)
	}
	w.wrote(now)
	return now, nil
}

// Claim patches a claim and returns it as it is now, as Volume does for volumes.
// With the rights of a sidecar that only updates claims, it does the same by an
// update that rests on the version.
func (w *Writer) PatchClaim(ctx context.Context, claim *v1.PersistentVolumeClaim, p *patch.Patch, subresource ...string) (*v1.PersistentVolumeClaim, error) {
	if p.Empty() {
		return claim, nil
	}
	body, err := p.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encode patch of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	now, err := w.patchOrUpdateClaim(ctx, claim, body, subresource)
	if err != nil {
		return nil, fmt.Errorf("patch claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	w.wrote(now)
	return now, nil
}

// wrote remembers the version; the write that took off the last finalizer was the
// object's last one.
func (w *Writer) wrote(now metav1.Object) {
	if now.GetDeletionTimestamp() != nil && len(now.GetFinalizers()) == 0 {
		w.versions.Forget(now.GetUID())
		return
	}
	w.versions.RecordWrite(now)
}
