package metrics

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// labels are the label values of a metric, in their order.
type labels interface {
	comparable
	values() []string
}

// volumeLabels are the labels of the total number of volumes.
type volumeLabels struct{ plugin, mode string }

func (s volumeLabels) values() []string { return []string{s.plugin, s.mode} }

// class is the name of a storage class, "" for none.
type class string

func (c class) values() []string { return []string{string(c)} }

// claimLabels are the labels of the numbers of claims.
type claimLabels struct{ namespace, class, attributes string }

func (d claimLabels) values() []string { return []string{d.namespace, d.class, d.attributes} }

// volumeKind has everything by which volumes are counted.
type volumeKind struct {
	volumeLabels
	class class
	bound bool
}

func kindOfVolume(volume *v1.PersistentVolume) volumeKind {
	return volumeKind{
		volumeLabels: volumeLabels{plugin(volume), string(storage.ModeOf(volume.Spec.VolumeMode))},
		class:        class(volume.Spec.StorageClassName), bound: volume.Status.Phase == v1.VolumeBound,
	}
}

// claimKind has everything by which claims are counted.
type claimKind struct {
	claimLabels
	bound bool
}

func kindOfClaim(claim *v1.PersistentVolumeClaim) claimKind {
	return claimKind{
		claimLabels: claimLabels{claim.Namespace, storage.ClaimClass(claim),
			ptr.Deref(claim.Spec.VolumeAttributesClassName, "")},
		bound: claim.Status.Phase == v1.ClaimBound,
	}
}

// tally is the numbers of bound and of unbound objects.
type tally[L labels] struct {
	bound, unbound map[L]int
}

func newTally[L labels]() tally[L] {
	return tally[L]{bound: map[L]int{}, unbound: map[L]int{}}
}

func (t tally[L]) add(labels L, bound bool, objects int) {
	if bound {
		t.bound[labels] += objects
		return
	}
	t.unbound[labels] += objects
}

// tallyVolumes adds up volumes by plugin and mode, and by class.
func tallyVolumes(kinds map[volumeKind]int) (map[volumeLabels]int, tally[class]) {
	total, byClass := map[volumeLabels]int{}, newTally[class]()
	for kind, objects := range kinds {
		total[kind.volumeLabels] += objects
		byClass.add(kind.class, kind.bound, objects)
	}
	return total, byClass
}

// tallyClaims adds up claims by namespace and classes.
func tallyClaims(kinds map[claimKind]int) tally[claimLabels] {
	byLabels := newTally[claimLabels]()
	for kind, objects := range kinds {
		byLabels.add(kind.claimLabels, kind.bound, objects)
	}
	return byLabels
}

// plugin returns the in-tree plugin of a volume, and N/A for all others, CSI volumes
// included: dashboards for kube-controller-manager keep their series.
func plugin(volume *v1.PersistentVolume) string {
	switch spec := volume.Spec.PersistentVolumeSource; {
	case spec.HostPath != nil:
		return "kubernetes.io/host-path"
	case spec.NFS != nil:
		return "kubernetes.io/nfs"
	}
	return "N/A"
}
