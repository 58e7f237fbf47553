package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// multitude is how many claims are being bound, and how many volumes reclaimed,
// when the leader is killed.
const multitude = 500

func TestTheLeaderIsKilledAmidFiveHundredBindingsAndReclaims(t *testing.T) {
	t.Parallel()
	s := enterFor(t, shared(t, setup{honor: true, elected: true, brief: true}), 5*patience)
	ledger := s.keepLedger()
	s.createMany("old", multitude)
	ledger.awaitBound("old", multitude)
	old := ledger.volumes("old")

	var load errgroup.Group
	load.Go(func() error { s.createMany("new", multitude); return nil })
	load.Go(func() error { return s.deleteMany("old", old) })
	ledger.awaitBound("new", multitude/10)
	leader := s.leader()
	s.must(leader.Kill(), "kill the leader")
	bound, gone := len(ledger.volumes("new")), ledger.gone(old)
	s.must(load.Wait(), "load the cluster")
	t.Logf("killed %s with %d of %d claims bound and %d of %d volumes reclaimed", leader.Name(), bound, multitude, gone, multitude)
	if bound == multitude || gone == multitude {
		t.Error("the leader was killed too late to show anything")
	}

	ledger.awaitBound("new", multitude)
	s.awaitCrowdGone(slices.Collect(maps.Values(old)))
	if again := s.leader(); again.Name() == leader.Name() {
		t.Errorf("%s is said to lead, which was killed", again.Name())
	}
	ledger.expectFaithful()
	s.expectPairs(multitude)
	s.expectNoLeak()
}

// createMany creates claims of the name, 32 at once.
func (s *scene) createMany(name string, count int) {
	s.t.Helper()
	var group errgroup.Group
	group.SetLimit(32)
	for i := range count {
		group.Go(func() error {
			_, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Create(s.ctx, s.newClaim(fmt.Sprintf("%s-%d", name, i), deleteClass), metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.t.Errorf("create claims: %v", err)
	}
}

// deleteMany deletes the claims of the name, and of every other one the volume first.
func (s *scene) deleteMany(name string, volumes map[string]string) error {
	var group errgroup.Group
	group.SetLimit(32)
	for i := range len(volumes) {
		claim := fmt.Sprintf("%s-%d", name, i)
		group.Go(func() error {
			if i%2 == 0 {
				if err := s.client.CoreV1().PersistentVolumes().Delete(s.ctx, volumes[claim], metav1.DeleteOptions{}); err != nil {
					return err
				}
			}
			return s.client.CoreV1().PersistentVolumeClaims(s.namespace).Delete(s.ctx, claim, metav1.DeleteOptions{})
		})
	}
	return group.Wait()
}

// ledger is what the watches of claims and volumes told: to whom each was ever bound.
type ledger struct {
	scene *scene

	mu      sync.Mutex
	changed *sync.Cond
	bound   map[string]string                 // volume, by name of a claim whose phase is Bound
	names   map[types.UID]sets.Set[string]    // all volumes that a claim ever named
	refs    map[types.UID]sets.Set[types.UID] // all claims that a volume ever referred to
	deleted sets.Set[string]                  // volumes that are gone
}

// keepLedger watches until the test ends. The API server ends watches that do not
// follow fast enough, so that those of an informer, which starts anew, are needed.
func (s *scene) keepLedger() *ledger {
	s.t.Helper()
	l := &ledger{scene: s, bound: map[string]string{}, names: map[types.UID]sets.Set[string]{}, refs: map[types.UID]sets.Set[types.UID]{}, deleted: sets.New[string]()}
	l.changed = sync.NewCond(&l.mu)
	factory := informers.NewSharedInformerFactory(s.client, 0)
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		factory.Core().V1().PersistentVolumeClaims().Informer(): controller.OnChange(func(_, c *v1.PersistentVolumeClaim) { l.noteClaim(c) }, func(*v1.PersistentVolumeClaim) {}),
		factory.Core().V1().PersistentVolumes().Informer():      controller.OnChange(func(_, v *v1.PersistentVolume) { l.noteVolume(v) }, l.noteGone),
	} {
		_, err := informer.AddEventHandler(handler)
		s.must(err, "watch")
	}
	factory.StartWithContext(s.ctx)
	s.t.Cleanup(factory.Shutdown)
	context.AfterFunc(s.ctx, l.changed.Broadcast) // so that whoever waits learns that the time is up
	return l
}

func (l *ledger) noteClaim(claim *v1.PersistentVolumeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if claim.Spec.VolumeName != "" {
		l.names[claim.UID] = sets.New(claim.Spec.VolumeName).Union(l.names[claim.UID])
	}
	if claim.Status.Phase == v1.ClaimBound && claim.Namespace == l.scene.namespace {
		l.bound[claim.Name] = claim.Spec.VolumeName
	}
	l.changed.Broadcast()
}

func (l *ledger) noteVolume(volume *v1.PersistentVolume) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" {
		l.refs[volume.UID] = sets.New(ref.UID).Union(l.refs[volume.UID])
	}
	l.changed.Broadcast()
}

func (l *ledger) noteGone(volume *v1.PersistentVolume) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted.Insert(volume.Name)
	l.changed.Broadcast()
}

// volumes are those of the bound claims of the name, by claim.
func (l *ledger) volumes(name string) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.boundOf(name)
}

func (l *ledger) boundOf(name string) map[string]string {
	found := map[string]string{}
	for claim, volume := range l.bound {
		if strings.HasPrefix(claim, name+"-") {
			found[claim] = volume
		}
	}
	return found
}

// awaitBound waits until so many claims of the name are bound.
func (l *ledger) awaitBound(name string, count int) {
	l.scene.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.boundOf(name)) < count {
		if err := l.scene.ctx.Err(); err != nil {
			l.scene.t.Fatalf("waiting until %d claims %s-* are bound (%d are): %v", count, name, len(l.boundOf(name)), err)
		}
		l.changed.Wait()
	}
}

// gone is how many of the volumes no longer exist.
func (l *ledger) gone(volumes map[string]string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for _, volume := range volumes {
		if l.deleted.Has(volume) {
			count++
		}
	}
	return count
}

// expectFaithful wants that no claim ever named two volumes, and no volume two claims.
func (l *ledger) expectFaithful() {
	l.scene.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for claim, names := range l.names {
		if names.Len() > 1 {
			l.scene.t.Errorf("claim %s was bound to %v", claim, sets.List(names))
		}
	}
	for volume, claims := range l.refs {
		if claims.Len() > 1 {
			l.scene.t.Errorf("volume %s referred to the claims %v", volume, sets.List(claims))
		}
	}
}

// expectPairs wants so many claims in the namespace, each bound to a volume that is
// bound to it.
func (s *scene) expectPairs(count int) {
	s.t.Helper()
	claims, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).List(s.ctx, metav1.ListOptions{})
	s.must(err, "list claims")
	if len(claims.Items) != count {
		s.t.Errorf("there are %d claims, want %d", len(claims.Items), count)
	}
	volumes, err := s.client.CoreV1().PersistentVolumes().List(s.ctx, metav1.ListOptions{})
	s.must(err, "list volumes")
	byClaim := map[types.UID][]string{}
	for _, volume := range volumes.Items {
		if ref := volume.Spec.ClaimRef; ref != nil && volume.Status.Phase == v1.VolumeBound {
			byClaim[ref.UID] = append(byClaim[ref.UID], volume.Name)
		}
	}
	for _, claim := range claims.Items {
		if got := byClaim[claim.UID]; claim.Status.Phase != v1.ClaimBound || !slices.Equal(got, []string{claim.Spec.VolumeName}) {
			s.t.Errorf("claim %s is %s and names %s; bound to it are %v", claim.Name, claim.Status.Phase, claim.Spec.VolumeName, got)
		}
	}
}

// expectNoLeak wants a PersistentVolume for every volume in the storage system, and
// the other way round.
func (s *scene) expectNoLeak() {
	s.t.Helper()
	volumes, err := s.client.CoreV1().PersistentVolumes().List(s.ctx, metav1.ListOptions{})
	s.must(err, "list volumes")
	known := sets.New[string]()
	for _, volume := range volumes.Items {
		known.Insert(handle(&volume))
	}
	stored := sets.New[string]()
	for page := ""; ; {
		list, err := s.storage().ListVolumes(s.ctx, &spec.ListVolumesRequest{StartingToken: page})
		s.must(err, "list volumes of the storage system")
		for _, entry := range list.GetEntries() {
			stored.Insert(entry.GetVolume().GetVolumeId())
		}
		if page = list.GetNextToken(); page == "" {
			break
		}
	}
	if leaked, missing := stored.Difference(known), known.Difference(stored); leaked.Len()+missing.Len() > 0 {
		s.t.Errorf("%d volumes leaked: %v; %d are missing: %v", leaked.Len(), sets.List(leaked), missing.Len(), sets.List(missing))
	}
}
