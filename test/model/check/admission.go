package check

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// withoutAdmission returns the cluster after a write as the writer requested it: without the
// finalizer that the admission policy added. Only the write that made a volume both used and
// reclaimed by policy Delete is changed.
func withoutAdmission(before, after *Snapshot) *Snapshot {
	requested := after
	changed(before.Volumes, after.Volumes, func(old, now *v1.PersistentVolume) {
		if old == nil || !isAdmitted(old, now) {
			return
		}
		volume, next := *now, *requested
		volume.Finalizers = slices.DeleteFunc(slices.Clone(now.Finalizers),
			func(name string) bool { return name == string(finalizer.External) })
		next.Volumes = replaced(requested.Volumes, &volume, false)
		requested = &next
	})
	return requested
}

// isAdmitted reports whether the admission policy added the provisioner's finalizer in the
// write, by the conditions of deploy/admission/policy.yaml.
func isAdmitted(old, now *v1.PersistentVolume) bool {
	return old.DeletionTimestamp == nil && now.Spec.CSI != nil && isUsedWithDelete(now) && !isUsedWithDelete(old) &&
		!finalizer.Has(old.Finalizers, finalizer.External) && finalizer.Has(now.Finalizers, finalizer.External)
}

// isUsedWithDelete reports whether the volume is or was Bound, or Released, with the policy Delete.
func isUsedWithDelete(volume *v1.PersistentVolume) bool {
	return (volume.Status.Phase == v1.VolumeBound || storage.PhaseOf(volume.Status.Phase).Released()) && isDelete(volume)
}
