package nodeterminator

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

// driftedNodes adds so many nodes whose claims have drifted, with this T, nil for none.
func (w *disrupted) driftedNodes(count int, period any) {
	w.t.Helper()
	for i := range count {
		name := fmt.Sprintf("n%03d", i)
		one := drifted(claimWith(name, termination.ClaimGroup, period))
		if err := errors.Join(w.Claims.informer.GetStore().Add(one), w.client.Tracker().Add(liveNode(name)),
			w.claims.Tracker().Create(claimResource, one.DeepCopy(), "")); err != nil {
			w.t.Fatal(err)
		}
		w.cached(liveNode(name))
	}
}

// A webhook that refuses was asked 2,999 times a minute: each failed deletion woke all nodes that waited.
func TestRefusedDisruptionPausesOthers(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		w.driftedNodes(50, "30m")
		var mu sync.Mutex
		var sent []string
		w.claims.PrependReactor("delete", "nodeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			sent = append(sent, action.(clienttesting.DeleteAction).GetName())
			mu.Unlock()
			<-time.After(20 * time.Millisecond)
			return true, nil, apierrors.NewForbidden(claimResource.GroupResource(), "n", errors.New("a webhook refuses"))
		})
		go w.loop.Run(w.ctx, 500)
		w.enqueueClaimed("")
		<-time.After(10 * time.Minute)
		mu.Lock()
		before := len(sent)
		mu.Unlock()
		<-time.After(time.Minute)
		synctest.Wait()
		if count := len(sent) - before; count == 0 || count >= 5 {
			w.t.Errorf("%d deletions in the minute after ten minutes", count)
		}
		if last := sent[len(sent)-3:]; last[0] == last[1] || last[1] == last[2] {
			w.t.Errorf("one claim keeps the others from being tried: %q", last)
		}
	})
}

// One claim that cannot be deleted does not keep the other nodes.
func TestRefusedDisruptionKeepsNoOthers(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		told := make(chan string, 100)
		w.reporter = controller.NewReporter(recorder(told))
		w.claims.PrependReactor("delete", "nodeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.(clienttesting.DeleteAction).GetName() != "a" {
				return false, nil, nil
			}
			return true, nil, apierrors.NewForbidden(claimResource.GroupResource(), "a", errors.New("a webhook refuses"))
		})
		if err := w.reconcile("a"); !controller.IsRefusal(err) {
			w.t.Error(err)
		}
		expectTold(w.t, told, "WriteRefused", "Deleting the NodeClaim", "a webhook refuses")
		go w.loop.Run(w.ctx, 3)
		w.enqueueClaimed("")
		<-time.After(time.Minute)
		synctest.Wait()
		if got := w.deleted(); !slices.Contains(got, "b") && !slices.Contains(got, "c") {
			w.t.Errorf("deleted %q", got)
		}
	})
}

// A node that is woken and does not take its place passes it on.
func TestPlaceIsPassedOn(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		ending := deletedNode("z", "30m", time.Now())
		w.cached(ending)
		if err := w.reconcile("a", "b", "c"); err != nil {
			w.t.Error(err)
		}
		if err := w.caches.Nodes.GetStore().Delete(ending); err != nil {
			w.t.Error(err)
		}
		for _, name := range []string{"a", "b"} {
			w.change(name, isAt("False"))
		}
		go w.loop.Run(w.ctx, 1)
		w.enqueueWaiting()
		<-time.After(time.Second)
		synctest.Wait()
		w.expectDeleted("c")
	})
}
