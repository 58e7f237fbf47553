package metrics

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// labels are the values of a metric's labels, in their order.
type labels interface {
	comparable
	values() []string
}

// source is what a volume is made of.
type source struct{ plugin, mode string }

func (s source) values() []string { return []string{s.plugin, s.mode} }

// class is the name of a storage class, "" for none.
type class string

func (c class) values() []string { return []string{string(c)} }

// demand is what a claim asks for, and where.
type demand struct{ namespace, class, attributes string }

func (d demand) values() []string { return []string{d.namespace, d.class, d.attributes} }

// tally counts objects, the bound ones apart.
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

// countVolumes counts volumes by what they are made of and by class. What is no
// volume is left out.
func countVolumes(objects []any) (map[source]int, tally[class]) {
	total, byClass := map[source]int{}, newTally[class]()
	for _, object := range objects {
		volume, ok := object.(*v1.PersistentVolume)
		if !ok {
			continue
		}
		mode := ptr.Deref(volume.Spec.VolumeMode, v1.PersistentVolumeFilesystem)
		total[source{plugin(volume), string(mode)}]++
		byClass.add(class(volume.Spec.StorageClassName), volume.Status.Phase == v1.VolumeBound)
	}
	return total, byClass
}

// countClaims counts claims by what they ask for. What is no claim is left out.
func countClaims(objects []any) tally[demand] {
	counted := newTally[demand]()
	for _, object := range objects {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		if !ok {
			continue
		}
		asked := demand{claim.Namespace, storage.ClaimClass(claim), ptr.Deref(claim.Spec.VolumeAttributesClassName, "")}
		counted.add(asked, claim.Status.Phase == v1.ClaimBound)
	}
	return counted
}

// plugin names the in-tree plugin of a volume; all others are N/A, those of CSI
// too, as in kube-controller-manager: its dashboards keep their series.
func plugin(volume *v1.PersistentVolume) string {
	switch spec := volume.Spec.PersistentVolumeSource; {
	case spec.HostPath != nil:
		return "kubernetes.io/host-path"
	case spec.NFS != nil:
		return "kubernetes.io/nfs"
	}
	return "N/A"
}
