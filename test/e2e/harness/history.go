package harness

import (
	"context"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// History records every binding that the watches of claims and volumes have reported.
type History struct {
	session *Session

	mu      sync.Mutex
	changed *sync.Cond                        // signals every change below
	bound   map[string]string                 // volumes of Bound claims, by claim name
	names   map[types.UID]sets.Set[string]    // all volume names of a claim, by claim UID
	refs    map[types.UID]sets.Set[types.UID] // all claim references of a volume, by volume UID
	deleted sets.Set[string]                  // names of deleted volumes
}

// RecordHistory records until the test ends. It uses informers, for the API server ends
// slow watches and informers start them again.
func (s *Session) RecordHistory() *History {
	s.T.Helper()
	l := &History{session: s, bound: map[string]string{}, names: map[types.UID]sets.Set[string]{},
		refs: map[types.UID]sets.Set[types.UID]{}, deleted: sets.New[string]()}
	l.changed = sync.NewCond(&l.mu)
	factory := informers.NewSharedInformerFactory(s.Client, 0)
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		factory.Core().V1().PersistentVolumeClaims().
			Informer(): controller.OnChange(func(_, c *v1.PersistentVolumeClaim) { l.noteClaim(c) },
			func(*v1.PersistentVolumeClaim) {}),
		factory.Core().V1().PersistentVolumes().
			Informer(): controller.OnChange(func(_, v *v1.PersistentVolume) { l.noteVolume(v) }, l.noteDeleted),
	} {
		_, err := informer.AddEventHandler(handler)
		s.Must(err, "watch")
	}
	factory.StartWithContext(s.Ctx)
	s.T.Cleanup(factory.Shutdown)
	context.AfterFunc(s.Ctx, l.changed.Broadcast) // ends AwaitBound at the deadline
	return l
}

func (l *History) noteClaim(claim *v1.PersistentVolumeClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if claim.Spec.VolumeName != "" {
		l.names[claim.UID] = sets.New(claim.Spec.VolumeName).Union(l.names[claim.UID])
	}
	if claim.Status.Phase == v1.ClaimBound && claim.Namespace == l.session.Namespace {
		l.bound[claim.Name] = claim.Spec.VolumeName
	}
	l.changed.Broadcast()
}

func (l *History) noteVolume(volume *v1.PersistentVolume) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ref := volume.Spec.ClaimRef; ref != nil && ref.UID != "" {
		l.refs[volume.UID] = sets.New(ref.UID).Union(l.refs[volume.UID])
	}
	l.changed.Broadcast()
}

func (l *History) noteDeleted(volume *v1.PersistentVolume) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted.Insert(volume.Name)
	l.changed.Broadcast()
}

// Volumes returns the volumes of the bound claims NAME-*, by claim.
func (l *History) Volumes(name string) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.boundOf(name)
}

func (l *History) boundOf(name string) map[string]string {
	found := map[string]string{}
	for claim, volume := range l.bound {
		if strings.HasPrefix(claim, name+"-") {
			found[claim] = volume
		}
	}
	return found
}

// AwaitBound waits until count claims NAME-* are bound.
func (l *History) AwaitBound(name string, count int) {
	l.session.T.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.boundOf(name)) < count {
		if err := l.session.Ctx.Err(); err != nil {
			l.session.T.Fatalf("waiting until %d claims %s-* are bound (%d are): %v", count, name, len(l.boundOf(name)), err)
		}
		l.changed.Wait()
	}
}

// Gone returns how many of the volumes were deleted.
func (l *History) Gone(volumes map[string]string) int {
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

// ExpectNoRebinding fails the test if a claim ever named two volumes, or a volume two claims.
func (l *History) ExpectNoRebinding() {
	l.session.T.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for claim, names := range l.names {
		if names.Len() > 1 {
			l.session.T.Errorf("claim %s was bound to %v", claim, sets.List(names))
		}
	}
	for volume, claims := range l.refs {
		if claims.Len() > 1 {
			l.session.T.Errorf("volume %s referred to the claims %v", volume, sets.List(claims))
		}
	}
}
