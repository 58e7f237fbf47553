package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// errUnprotected: the provisioner has not added its finalizer yet.
var errUnprotected = errors.New("the volume has no finalizer of the provisioner yet")

// recordAdmission records whether the admission policy was applied. An API server that does not
// serve its kind is no failure.
func (w *world) recordAdmission(applied error) error {
	var unserved *meta.NoKindMatchError
	if errors.As(applied, &unserved) {
		w.careful = true
		fmt.Fprintln(w.config.Out,
			"this version of Kubernetes has no MutatingAdmissionPolicy, so the admission policy is left out: users wait for the finalizer of a volume before they delete the volume")
		return nil
	}
	w.admission = applied == nil
	return applied
}

// awaitProtection waits until the disk of the volume outlives no deletion of the volume.
func (lc *lifecycle) awaitProtection(ctx context.Context, volume *v1.PersistentVolume) error {
	return lc.do(ctx, "wait for the finalizer of volume "+volume.Name,
		func(ctx context.Context, client kubernetes.Interface) error {
			now, err := client.CoreV1().PersistentVolumes().Get(ctx, volume.Name, metav1.GetOptions{})
			if err != nil {
				return ignore(err, apierrors.IsNotFound)
			}
			if lacksProtection(now) {
				return errUnprotected
			}
			return nil
		})
}

// lacksProtection reports whether the controllers will add the finalizer without which a
// deletion of the volume would leave its disk behind.
func lacksProtection(volume *v1.PersistentVolume) bool {
	return volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete &&
		volume.Spec.ClaimRef != nil && volume.DeletionTimestamp == nil && lacksFinalizer(volume)
}

func lacksFinalizer(volume *v1.PersistentVolume) bool {
	return !slices.Contains(volume.Finalizers, string(finalizer.External))
}
