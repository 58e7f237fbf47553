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

// tally counts bound and unbound objects.
type tally[L labels] struct {
	bound, unbound map[L]int
}

func newTally[L labels]() tally[L] {
	return tally[L]{bound: map[L]int{}, unbound: map[L]int{}}
}

func (t tally[L]) add(labels L, bound bool) {
	if bound {
		t.bound[labels]++
		return
	}
	t.unbound[labels]++
}

// countVolumes counts volumes by plugin and mode, and by class. Other objects are ignored.
func countVolumes(objects []any) (map[volumeLabels]int, tally[class]) {
	total, byClass := map[volumeLabels]int{}, newTally[class]()
	for _, object := range objects {
		volume, ok := object.(*v1.PersistentVolume)
		if !ok {
			continue
		}
		mode := storage.ModeOf(volume.Spec.VolumeMode)
		total[volumeLabels{plugin(volume), string(mode)}]++
		byClass.add(class(volume.Spec.StorageClassName), volume.Status.Phase == v1.VolumeBound)
	}
	return total, byClass
}

// countClaims counts claims by namespace and classes. Other objects are ignored.
func countClaims(objects []any) tally[claimLabels] {
	counted := newTally[claimLabels]()
	for _, object := range objects {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		if !ok {
			continue
		}
		labels := claimLabels{claim.Namespace, storage.ClaimClass(claim), ptr.Deref(claim.Spec.VolumeAttributesClassName, "")}
		counted.add(labels, claim.Status.Phase == v1.ClaimBound)
	}
	return counted
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
