package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// crowd is how many claims are made at once.
const crowd = 200

func TestTwoHundredVolumesDeletedBeforeTheirClaimsAreEachDeletedOnce(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	for i := range crowd {
		s.createClaim(fmt.Sprintf("claim-%d", i), deleteClass)
	}
	volumes := s.volumesOf(s.awaitCrowdBound(crowd))
	for _, volume := range volumes {
		s.deleteVolume(volume.Name)
	}
	s.must(s.client.CoreV1().PersistentVolumeClaims(s.namespace).DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "delete claims")
	s.awaitCrowdGone(namesOf(volumes))
	s.expectOneCallEach(volumes)
	s.expectFewConflicts(volumes)
}

// awaitCrowdBound watches until so many claims of the test are bound, and returns
// the names of their volumes.
func (s *scene) awaitCrowdBound(size int) []string {
	s.t.Helper()
	bound := map[string]string{}
	source := cache.NewListWatchFromClient(s.client.CoreV1().RESTClient(), "persistentvolumeclaims", s.namespace, fields.Everything())
	_, err := watchtools.UntilWithSync(s.ctx, source, &v1.PersistentVolumeClaim{}, nil, func(event watch.Event) (bool, error) {
		if claim, ok := event.Object.(*v1.PersistentVolumeClaim); ok && claim.Status.Phase == v1.ClaimBound {
			bound[claim.Name] = claim.Spec.VolumeName
		}
		return len(bound) == size, nil
	})
	s.must(err, fmt.Sprintf("wait until %d claims are bound (%d are)", size, len(bound)))
	return slices.Collect(maps.Values(bound))
}

func (s *scene) volumesOf(names []string) []*v1.PersistentVolume {
	s.t.Helper()
	var volumes []*v1.PersistentVolume
	for _, name := range names {
		volume, err := s.client.CoreV1().PersistentVolumes().Get(s.ctx, name, metav1.GetOptions{})
		s.must(err, "read volume")
		volumes = append(volumes, volume)
	}
	return volumes
}

// awaitCrowdGone watches until none of the volumes exists.
func (s *scene) awaitCrowdGone(volumes []string) {
	s.t.Helper()
	left := map[string]bool{}
	for _, volume := range volumes {
		left[volume] = true
	}
	source := cache.NewListWatchFromClient(s.client.CoreV1().RESTClient(), "persistentvolumes", "", fields.Everything())
	_, err := watchtools.UntilWithSync(s.ctx, source, &v1.PersistentVolume{}, func(store cache.Store) (bool, error) {
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
	s.must(err, fmt.Sprintf("wait until all volumes are gone (%d are left)", len(left)))
}

func namesOf(volumes []*v1.PersistentVolume) []string {
	var names []string
	for _, volume := range volumes {
		names = append(names, volume.Name)
	}
	return names
}

// expectOneCallEach checks the driver's log: one call of each method per volume.
func (s *scene) expectOneCallEach(volumes []*v1.PersistentVolume) {
	s.t.Helper()
	all, err := csimock.ReadCalls(s.driver.CallLog)
	s.must(err, "read call log")
	created, deleted := map[string]int{}, map[string]int{}
	for _, call := range all {
		switch call.Method {
		case "CreateVolume":
			created[call.Volume]++
		case "DeleteVolume":
			deleted[call.Volume]++
		}
	}
	for _, volume := range volumes {
		if h := handle(volume); created[h] != 1 || deleted[h] != 1 {
			s.t.Errorf("%s: CreateVolume was called %d times, DeleteVolume %d times, want once each", h, created[h], deleted[h])
		}
	}
}

// expectFewConflicts checks the audit log: a write that was refused because the
// object had changed is looked at again, not hammered.
func (s *scene) expectFewConflicts(volumes []*v1.PersistentVolume) {
	s.t.Helper()
	mine := map[string]bool{}
	for _, volume := range volumes {
		mine[volume.Name] = true
	}
	events, err := sandbox.ReadAudit(s.plane.AuditLog)
	s.must(err, "read audit log")
	refused, writes := map[string]int{}, 0
	for _, event := range events {
		ours := strings.HasPrefix(event.User, "system:serviceaccount:"+deploy.Namespace) && event.Writes()
		if !ours || !mine[event.Name] && event.Namespace != s.namespace || event.Resource == "events" {
			continue
		}
		writes++
		if event.Code == 409 || event.Code == 422 {
			refused[event.Resource+"/"+event.Name]++
		}
	}
	for object, times := range refused {
		if times > 2 {
			s.t.Errorf("%s: %d writes were refused for a conflict", object, times)
		}
	}
	s.t.Logf("%d writes for %d volumes, %d objects had a conflict", writes, len(volumes), len(refused))
	if writes > 9*len(volumes) {
		s.t.Errorf("%d writes for %d volumes, want at most 9 each", writes, len(volumes))
	}
}
