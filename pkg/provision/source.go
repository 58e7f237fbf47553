package provision

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// SourceKind is what a volume is filled from.
type SourceKind int

const (
	// Empty: from nothing.
	Empty SourceKind = iota
	// Snapshot: from a VolumeSnapshot.
	Snapshot
	// Clone: from another claim's volume.
	Clone
)

// Source is what a volume is filled from; it lies in the claim's namespace.
type Source struct {
	Kind SourceKind
	Name string
}

// The kinds of data sources that a provisioner serves.
const (
	snapshotGroup = "snapshot.storage.k8s.io"
	snapshotKind  = "VolumeSnapshot"
	claimKind     = "PersistentVolumeClaim"
)

// sourceOf returns the claim's data source. One of a kind that drivers do not know
// is left to its populator.
func sourceOf(claim *v1.PersistentVolumeClaim) (Source, error) {
	if claim.Spec.DataSource == nil && claim.Spec.DataSourceRef == nil {
		return Source{}, nil
	}
	group, kind, name, err := dataSource(claim)
	switch {
	case err != nil:
		return Source{}, err
	case name == "":
		return Source{}, refuse("PVC source not found: the claim has a data source without a name")
	case kind == snapshotKind && group == snapshotGroup:
		return Source{Snapshot, name}, nil
	case kind == snapshotKind:
		return Source{}, refuse("PVC source does not belong to the right APIGroup: it is a %s of the group %q, and only those of %s can be restored", kind, group, snapshotGroup)
	case kind == claimKind && group == "":
		return Source{Clone, name}, nil
	}
	return Source{}, &NotOurs{Sentence: fmt.Sprintf("Assuming an external populator will provision the volume: the data source is a %s of the group %q", kind, group)}
}

// dataSource reads either of the two fields that a claim has for it.
func dataSource(claim *v1.PersistentVolumeClaim) (group, kind, name string, err error) {
	if source := claim.Spec.DataSource; source != nil {
		return ptr.Deref(source.APIGroup, ""), source.Kind, source.Name, nil
	}
	source := claim.Spec.DataSourceRef
	if namespace := ptr.Deref(source.Namespace, ""); namespace != "" && namespace != claim.Namespace {
		return "", "", "", refuse("dataSourceRef namespace specified, %s, and this provisioner supports only the namespace of the claim", namespace)
	}
	return ptr.Deref(source.APIGroup, ""), source.Kind, source.Name, nil
}
