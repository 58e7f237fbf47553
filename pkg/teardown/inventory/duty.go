package inventory

import (
	"cmp"
	"slices"
	"time"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/teardown/balancer"
)

// Duty is what a controller has to delete.
type Duty struct {
	// Kind and Group are those of the object.
	Kind, Group string
	// Finalizer is that of the controller, "" if the objects have none.
	Finalizer string
	// Driver is the CSI driver, or the provisioner of a volume without one. CSI: it is a CSI driver.
	Driver string
	CSI    bool
}

// Counted is a duty with the number of its objects.
type Counted struct {
	Duty

	Objects int
}

// Duties returns what controllers have to delete, sorted.
func (i *Inventory) Duties(now time.Time) []Counted {
	v, counts := i.at(now), map[Duty]int{}
	for name, f := range i.volumes {
		if awaitsVolume(v.fates[name]) {
			counts[Duty{"PersistentVolume", "", string(finalizer.External), f.driver, f.isCSI}]++
		}
	}
	for id, o := range i.outsides {
		if v.outsides[id].Action == balancer.Leave || o.state.Kind == balancer.Snapshot {
			continue
		}
		duty := Duty{Kind: o.kind, Group: o.resource.Group}
		for _, name := range o.finalizers {
			duty.Finalizer = name
			counts[duty]++
		}
	}
	for _, c := range i.contents {
		o := i.outsides["VolumeSnapshot "+c.snapshot.String()]
		leaves := o != nil && v.outsides["VolumeSnapshot "+c.snapshot.String()].Action == balancer.Leave
		if c.deletable && !leaves {
			counts[Duty{"VolumeSnapshotContent", "snapshot.storage.k8s.io", contentFinalizer, c.driver, true}]++
		}
	}
	duties := make([]Counted, 0, len(counts))
	for duty, count := range counts {
		duties = append(duties, Counted{duty, count})
	}
	slices.SortFunc(duties, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Finalizer, b.Finalizer))
	})
	return duties
}

// contentFinalizer keeps the content of a snapshot until the sidecar of the CSI driver has deleted the snapshot.
const contentFinalizer = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
