package controller

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// NeededSourceIndex indexes pending claims by the namespace/name of their data source of
// that kind.
func NeededSourceIndex(kind storage.SourceKind) cache.IndexFunc {
	return func(object any) ([]string, error) {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		if !ok {
			return nil, nil
		}
		source := protection.NeededSource(claim)
		if source.Kind != kind {
			return nil, nil
		}
		return []string{source.Namespace + "/" + source.Name}, nil
	}
}
