package harness

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// AwaitManyBound waits until count claims of the test are bound, and returns the names
// of their volumes.
func (s *Session) AwaitManyBound(count int) []string {
	s.T.Helper()
	bound := map[string]string{}
	source := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "persistentvolumeclaims", s.Namespace,
		fields.Everything())
	_, err := watchtools.UntilWithSync(s.Ctx, source, &v1.PersistentVolumeClaim{}, nil,
		func(event watch.Event) (bool, error) {
			if claim, ok := event.Object.(*v1.PersistentVolumeClaim); ok && claim.Status.Phase == v1.ClaimBound {
				bound[claim.Name] = claim.Spec.VolumeName
			}
			return len(bound) == count, nil
		})
	s.Must(err, fmt.Sprintf("wait until %d claims are bound (%d are)", count, len(bound)))
	return slices.Collect(maps.Values(bound))
}

// AwaitManyGone waits until none of the volumes exists.
func (s *Session) AwaitManyGone(volumes []string) {
	s.T.Helper()
	left := map[string]bool{}
	for _, volume := range volumes {
		left[volume] = true
	}
	source := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "persistentvolumes", "", fields.Everything())
	_, err := watchtools.UntilWithSync(s.Ctx, source, &v1.PersistentVolume{}, func(store cache.Store) (bool, error) {
		for name := range left {
			if _, exists, err := store.GetByKey(name); err == nil && !exists {
				delete(left, name)
			}
		}
		return len(left) == 0, nil
	}, func(event watch.Event) (bool, error) {
		if volume, ok := event.Object.(*v1.PersistentVolume); ok && event.Type == watch.Deleted {
			delete(left, volume.Name)
		}
		return len(left) == 0, nil
	})
	s.Must(err, fmt.Sprintf("wait until no volume exists (%d do)", len(left)))
}
