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

// Writer patches claims and volumes and records the resulting versions.
type Writer struct {
	client   kubernetes.Interface
	versions *Versions
	claims   *UpdateFallback
	// repeats are those of all writers with these versions; nil for no pauses.
	repeats *Repeats
}

// NewWriter returns a writer that records its writes in versions.
func NewWriter(client kubernetes.Interface, versions *Versions) *Writer {
	return &Writer{client: client, versions: versions, claims: NewUpdateFallback(client.CoreV1().RESTClient(),
		v1.Resource("persistentvolumeclaims")), repeats: &versions.repeats}
}

// Unpaused returns the writer for a field that another program is to set again after each write, so that equal writes
// need no pauses.
func (w *Writer) Unpaused() *Writer {
	unpaused := *w
	unpaused.repeats = nil
	return &unpaused
}

// RequirePhase adds a test for the observed phase to the patch. An empty phase is absent
// from the JSON, so no test can match it; then the patch tests the resource version.
func RequirePhase(change *patch.Patch, volume *v1.PersistentVolume) *patch.Patch {
	if volume.Status.Phase == "" {
		return change.Test("/metadata/resourceVersion", volume.ResourceVersion)
	}
	return change.Test("/status/phase", string(volume.Status.Phase))
}

// PatchVolume patches a volume and returns the result. The subresource is none or
// "status". An empty patch is not sent. The error says what a live read proved of a refusal ([CheckRefusal]), or
// that the patch was undone ([RevertedError]).
func (w *Writer) PatchVolume(ctx context.Context, volume *v1.PersistentVolume, p *patch.Patch,
	subresource ...string) (*v1.PersistentVolume, error) {
	if p.Empty() {
		return volume, nil
	}
	body, err := p.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encode patch of volume %s: %w", volume.Name, err)
	}
	volumes := w.client.CoreV1().PersistentVolumes()
	now, err := send(w, volume, p, func() (*v1.PersistentVolume, error) {
		return volumes.Patch(ctx, volume.Name, types.JSONPatchType, body, metav1.PatchOptions{}, subresource...)
	})
	if err != nil {
		return nil, fmt.Errorf("patch volume %s: %w", volume.Name, CheckRefusal(ctx, err, "volume", volume, volumes.Get))
	}
	return now, nil
}

// send sends the write that has the effect of the patch, unless the write has to wait, and records it.
func send[T metav1.Object](w *Writer, object T, p *patch.Patch, request func() (T, error)) (T, error) {
	var none T
	effect, err := p.Effect()
	if err != nil {
		return none, err
	}
	if err := w.repeats.Check(object.GetUID(), effect); err != nil {
		return none, err
	}
	now, err := request()
	if err != nil {
		return none, err
	}
	if err := checkAnswer(now, object); err != nil {
		return none, err
	}
	w.repeats.Record(object.GetUID(), effect)
	if isUndone(now, object, effect) {
		return none, &RevertedError{}
	}
	w.repeats.Replaced(object, now)
	w.wrote(now)
	return now, nil
}

// PatchClaim patches a claim and returns the result. Where patches are forbidden, as by
// the RBAC rules of upstream's sidecar, it sends an update with the read version. Errors are those of PatchVolume.
func (w *Writer) PatchClaim(ctx context.Context, claim *v1.PersistentVolumeClaim, p *patch.Patch,
	subresource ...string) (*v1.PersistentVolumeClaim, error) {
	if p.Empty() {
		return claim, nil
	}
	body, err := p.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encode patch of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	now, err := send(w, claim, p,
		func() (*v1.PersistentVolumeClaim, error) { return w.patchOrUpdateClaim(ctx, claim, body, subresource) })
	if err != nil {
		claims := w.client.CoreV1().PersistentVolumeClaims(claim.Namespace)
		return nil, fmt.Errorf("patch claim %s/%s: %w", claim.Namespace, claim.Name,
			CheckRefusal(ctx, err, "claim", claim, claims.Get))
	}
	return now, nil
}

// wrote records the version. Removing the last finalizer of a deleted object is its last
// write.
func (w *Writer) wrote(now metav1.Object) {
	if now.GetDeletionTimestamp() != nil && len(now.GetFinalizers()) == 0 {
		w.versions.Forget(now.GetUID())
		w.versions.ExpectChange(now)
		return
	}
	w.versions.RecordWrite(now)
}
