package storage

import (
	"cmp"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// SourceKind is the kind of a claim's data source.
type SourceKind int

const (
	// SourceNone: the volume starts empty.
	SourceNone SourceKind = iota
	// SourceClaim: the volume is a clone of a claim's volume.
	SourceClaim
	// SourceSnapshot: the volume is restored from a VolumeSnapshot.
	SourceSnapshot
	// SourceOther: a volume populator fills the volume.
	SourceOther
)

// String returns the name of the value.
func (k SourceKind) String() string {
	return enum.Name(k, "None", "PersistentVolumeClaim", "VolumeSnapshot", "Other")
}

// SnapshotGroup is the API group of VolumeSnapshots.
const SnapshotGroup = "snapshot.storage.k8s.io"

// DataSource names the object that a volume is filled from.
type DataSource struct {
	Kind            SourceKind
	Namespace, Name string
}

// DataSourceRefs returns a claim's dataSource and dataSourceRef, in this order, each
// only if set, with the namespace of the claim where the reference has none.
func DataSourceRefs(claim *v1.PersistentVolumeClaim) []v1.TypedObjectReference {
	var refs []v1.TypedObjectReference
	if source := claim.Spec.DataSource; source != nil {
		refs = append(refs, v1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name,
			Namespace: ptr.To(claim.Namespace)})
	}
	if source := claim.Spec.DataSourceRef; source != nil {
		ref := *source
		ref.Namespace = ptr.To(cmp.Or(ptr.Deref(source.Namespace, ""), claim.Namespace))
		refs = append(refs, ref)
	}
	return refs
}

// DataSourceOf returns the object that a reference of [DataSourceRefs] names. A
// VolumeSnapshot without an API group counts as a snapshot, and a claim of the group "core", which
// users write for the group without a name, as a claim: csi-provisioner clones it.
func DataSourceOf(ref v1.TypedObjectReference) DataSource {
	source := DataSource{Kind: SourceOther, Namespace: ptr.Deref(ref.Namespace, ""), Name: ref.Name}
	switch group := ptr.Deref(ref.APIGroup, ""); {
	case ref.Kind == "PersistentVolumeClaim" && (group == "" || group == "core"):
		source.Kind = SourceClaim
	case ref.Kind == "VolumeSnapshot" && (group == "" || group == SnapshotGroup):
		source.Kind = SourceSnapshot
	}
	return source
}
