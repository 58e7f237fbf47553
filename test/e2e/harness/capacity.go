package harness

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/exeunt-io/exeunt/deploy"
)

// TwoZones are the flags of a driver with two zones of limited capacity.
const TwoZones = "--with=topology --topology=zone=a --topology=zone=b --capacity=1Gi"

// FreeCapacity returns the capacity that the driver reports for the zone.
func (s *Session) FreeCapacity(zone string) int64 {
	s.T.Helper()
	response, err := s.StorageClient().GetCapacity(s.Ctx,
		&spec.GetCapacityRequest{AccessibleTopology: &spec.Topology{Segments: map[string]string{"zone": zone}}})
	s.Must(err, "read capacity from the driver")
	return response.GetAvailableCapacity()
}

// AwaitCapacity waits until the CSIStorageCapacity objects are those in want, a list of
// CLASS/ZONE=BYTES separated by spaces, and returns them in that order.
func (s *Session) AwaitCapacity(when, want string) []storagev1.CSIStorageCapacity {
	s.T.Helper()
	objects := map[types.UID]storagev1.CSIStorageCapacity{}
	source := cache.NewListWatchFromClient(s.Client.StorageV1().RESTClient(), "csistoragecapacities", deploy.Namespace,
		fields.Everything())
	precondition := func(store cache.Store) (bool, error) {
		for _, object := range store.List() {
			known := object.(*storagev1.CSIStorageCapacity)
			objects[known.UID] = *known
		}
		return describe(objects) == want, nil
	}
	_, err := watchtools.UntilWithSync(s.Ctx, source, &storagev1.CSIStorageCapacity{}, precondition,
		func(event watch.Event) (bool, error) {
			known := event.Object.(*storagev1.CSIStorageCapacity)
			if event.Type == watch.Deleted {
				delete(objects, known.UID)
			} else {
				objects[known.UID] = *known
			}
			return describe(objects) == want, nil
		})
	if err != nil {
		s.T.Fatalf("%s: waiting for objects %q: %v; there are %q", when, want, err, describe(objects))
	}
	return sorted(objects)
}

func describe(objects map[types.UID]storagev1.CSIStorageCapacity) string {
	var texts []string
	for _, object := range sorted(objects) {
		text := fmt.Sprintf("%s=%d", capacityKey(object), object.Capacity.Value())
		if object.MaximumVolumeSize != nil {
			text += fmt.Sprintf("(%d)", object.MaximumVolumeSize.Value())
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

func sorted(objects map[types.UID]storagev1.CSIStorageCapacity) []storagev1.CSIStorageCapacity {
	return slices.SortedFunc(maps.Values(objects), func(a, b storagev1.CSIStorageCapacity) int {
		return cmp.Compare(capacityKey(a), capacityKey(b))
	})
}

func capacityKey(object storagev1.CSIStorageCapacity) string {
	return object.StorageClassName + "/" + strings.Join(slices.Sorted(maps.Values(object.NodeTopology.MatchLabels)), ",")
}
