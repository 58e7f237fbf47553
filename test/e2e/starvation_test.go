package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// BenchmarkNewClaimsBesideFailingDeletions measures, in one run, how long a new claim
// takes until it is bound, before and while a thousand volumes cannot be deleted. Only
// the difference of the two medians says anything:
//
//	go test ./test/e2e -run xxx -bench FailingDeletions -benchtime 1x
func BenchmarkNewClaimsBesideFailingDeletions(b *testing.B) {
	c := shared(b, setup{honor: true, alone: "starvation"})
	for b.Loop() {
		s := enterFor(b, c, 5*patience)
		without := s.medianUntilBound("before", 100)
		s.leaveUndeletable(1000)
		with := s.medianUntilBound("beside", 100)
		b.ReportMetric(float64(without.Microseconds())/1000, "ms/claim-without")
		b.ReportMetric(float64(with.Microseconds())/1000, "ms/claim-with-1000-failing")
		b.ReportMetric(float64((with-without).Microseconds())/1000, "ms/delay")
	}
}

// medianUntilBound makes claims one after the other and returns the median of the
// times from the request until the watch says Bound.
func (s *scene) medianUntilBound(name string, count int) time.Duration {
	s.t.Helper()
	ledger := s.keepLedger()
	var times []time.Duration
	for i := range count {
		start := time.Now()
		s.createClaim(fmt.Sprintf("%s-%d", name, i), deleteClass)
		ledger.awaitBound(name, i+1)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// leaveUndeletable makes so many volumes whose claim is gone and whose deletion fails
// again and again, and waits until each has been tried: half of them of the driver,
// which refuses their handle, half host paths outside of where the plugin deletes.
func (s *scene) leaveUndeletable(count int) []string {
	s.t.Helper()
	volumes := make([]string, count)
	var group errgroup.Group
	group.SetLimit(32)
	for i := range count {
		volume := s.undeletable(i)
		volumes[i] = volume.Name
		group.Go(func() error {
			_, err := s.client.CoreV1().PersistentVolumes().Create(s.ctx, volume, metav1.CreateOptions{})
			return err
		})
	}
	s.must(group.Wait(), "create volumes")
	s.awaitLetGo(volumes)
	return volumes
}

// awaitLetGo watches until all of the volumes are Released or Failed.
func (s *scene) awaitLetGo(volumes []string) {
	s.t.Helper()
	waiting := sets.New(volumes...)
	source := cache.NewListWatchFromClient(s.client.CoreV1().RESTClient(), "persistentvolumes", "", fields.Everything())
	_, err := watchtools.UntilWithSync(s.ctx, source, &v1.PersistentVolume{}, nil, func(event watch.Event) (bool, error) {
		if v, ok := event.Object.(*v1.PersistentVolume); ok && (v.Status.Phase == v1.VolumeReleased || v.Status.Phase == v1.VolumeFailed) {
			waiting.Delete(v.Name)
		}
		return waiting.Len() == 0, nil
	})
	s.must(err, fmt.Sprintf("wait until all volumes were let go of (%d were not)", waiting.Len()))
}

func (s *scene) undeletable(i int) *v1.PersistentVolume {
	volume := s.newVolume(fmt.Sprintf("undeletable-%d", i), v1.PersistentVolumeReclaimDelete)
	volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.namespace, Name: "gone", UID: types.UID(fmt.Sprintf("gone-%d", i))}
	if i%2 == 0 {
		volume.Spec.CSI.VolumeHandle = fmt.Sprintf("%d-%s", i, strings.Repeat("x", 300))
		return volume
	}
	volume.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/host-path"}
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: fmt.Sprintf("/nowhere/%d", i)}}
	return volume
}

// Failing deletions have queues of their own, and ask in proportion to their number.
func TestDeletionsThatFailAskLittleAndHoldUpNobody(t *testing.T) {
	t.Parallel()
	s := enterFor(t, shared(t, setup{honor: true, alone: "starvation"}), 3*patience)
	volumes := s.leaveUndeletable(40)
	for range 10 {
		s.passQueues()
	}
	asked := map[string]int{}
	for _, event := range s.requests() {
		asked[event.Name]++
	}
	for _, name := range volumes {
		if asked[name] > 40 {
			t.Errorf("%d requests for %s, whose deletion fails: the time between two tries must grow", asked[name], name)
		}
	}
	for agent, most := range map[string]int{"pv-controller-binding": 20 * 10, "pv-controller-releasing": 5 * 60, "pv-controller-reclaiming": 20 * 40} {
		if got := s.count(func(e sandbox.Event) bool { return strings.HasSuffix(e.UserAgent, "/"+agent) }); got == 0 || got > most {
			t.Errorf("%s asked %d times, want at least once and at most %d times", agent, got, most)
		}
	}
}
