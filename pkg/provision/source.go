package provision

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// sourceOf returns the data source of the claim: dataSource, or else dataSourceRef. It
// returns [LeftToOther] for a kind that only a volume populator knows.
func sourceOf(claim *v1.PersistentVolumeClaim) (storage.DataSource, error) {
	refs := storage.DataSourceRefs(claim)
	if len(refs) == 0 {
		return storage.DataSource{}, nil
	}
	source, kind, group := storage.DataSourceOf(refs[0]), refs[0].Kind, ptr.Deref(refs[0].APIGroup, "")
	switch {
	case source.Namespace != claim.Namespace:
		return storage.DataSource{},
			refuse("dataSourceRef namespace specified: the data source is in namespace %s, and this provisioner supports only sources in the namespace of the claim", source.Namespace)
	case source.Name == "":
		return storage.DataSource{}, refuse("PVC source not found: the claim has a data source without a name")
	case kind == "VolumeSnapshot" && group != storage.SnapshotGroup:
		return storage.DataSource{},
			refuse("PVC source does not belong to the right APIGroup: it is a %s of the group %q, and only those of %s can be restored", kind, group, storage.SnapshotGroup)
	case source.Kind == storage.SourceOther:
		return storage.DataSource{},
			&LeftToOther{Sentence: fmt.Sprintf("Assuming an external populator will provision the volume: the data source is a %s of the group %q", kind, group)}
	}
	return source, nil
}
