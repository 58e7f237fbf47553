package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Volumes reads all PersistentVolumes, once, and reports whether all were seen. Of a volume
// it keeps what tells its disk, its claim and whether it waits: clusters have tens of
// thousands of volumes.
func Volumes(ctx context.Context, r *Reader) ([]corev1.PersistentVolume, bool) {
	type answer struct {
		volumes []corev1.PersistentVolume
		seen    bool
	}
	found := remember(r, "compact volumes", func(r *Reader) answer {
		var all []corev1.PersistentVolume
		seen := each(ctx, r, PersistentVolumes, Selection{}, func() { all = nil }, func(page []corev1.PersistentVolume) {
			for i := range page {
				all = append(all, compact(&page[i]))
			}
		})
		return answer{all, seen}
	})
	return found.volumes, found.seen
}

// compact returns the volume without its status, its managed fields, and the labels and
// annotations that tell nothing of the disk of a CSI volume.
func compact(volume *corev1.PersistentVolume) corev1.PersistentVolume {
	small := corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: volume.Name, UID: volume.UID, CreationTimestamp: volume.CreationTimestamp, DeletionTimestamp: volume.DeletionTimestamp,
		},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: volume.Spec.PersistentVolumeSource, ClaimRef: volume.Spec.ClaimRef,
			PersistentVolumeReclaimPolicy: volume.Spec.PersistentVolumeReclaimPolicy,
		},
		Status: corev1.PersistentVolumeStatus{Phase: volume.Status.Phase, LastPhaseTransitionTime: volume.Status.LastPhaseTransitionTime},
	}
	if volume.Spec.CSI == nil { // the translation of in-tree volumes reads them
		small.Labels, small.Annotations = volume.Labels, volume.Annotations
		small.Spec.NodeAffinity, small.Spec.AccessModes = volume.Spec.NodeAffinity, volume.Spec.AccessModes
	}
	return small
}
