package pvwriter

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Writer writes PersistentVolumes with one client. Its methods return the volume as the
// API server returned it.
type Writer struct {
	client kubernetes.Interface
	writer *controller.Writer
}

// New returns a writer that records the versions it wrote.
func New(client kubernetes.Interface, versions *controller.Versions) *Writer {
	return &Writer{client: client, writer: controller.NewWriter(client, versions)}
}

// DeleteObject deletes this version of the PersistentVolume: another version may refer
// to another claim. It returns the volume as a read shows it afterwards, nil if it is gone: the answer to the
// deletion proves nothing.
func (w *Writer) DeleteObject(ctx context.Context, volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &volume.UID, ResourceVersion: &volume.ResourceVersion}}
	volumes := w.client.CoreV1().PersistentVolumes()
	err := controller.CheckRefusal(ctx, volumes.Delete(ctx, volume.Name, options), "volume", volume, volumes.Get)
	switch {
	case errors.Is(err, controller.ErrGone):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("delete volume object %s: %w", volume.Name, err)
	}
	now, err := controller.LiveVolume(ctx, w.client, volume)
	if err == nil && now != nil && now.DeletionTimestamp == nil {
		return nil, fmt.Errorf("delete volume object %s: the API server answers with success, but the object is not being deleted", volume.Name)
	}
	return now, err
}
