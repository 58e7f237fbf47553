package nodeterminator

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/disruption"
)

// #62 The Lease passes to another process while the others are listed.
func TestFormerLeaderDeletesNoClaim(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		leads := true
		w.Leading = func() bool { return leads }
		w.claims.PrependReactor("list", "nodeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			leads = false
			return false, nil, nil
		})
		if err := w.reconcile("a"); err == nil {
			w.t.Error("a former leader reports no error")
		}
		w.expectDeleted()
	})
}

// #62 The answer to the DELETE of a is lost, and the API server may still carry it out: b waits until it no longer can.
func TestUnknownDeletionKeepsItsPlace(t *testing.T) {
	resource := claimResource.GroupResource()
	for name, tc := range map[string]struct {
		verb    string
		err     error
		unknown bool
	}{
		"the connection is lost":   {"delete", errors.New("http2: client connection lost"), true},
		"500":                      {"delete", apierrors.NewInternalError(errors.New("etcd is away")), true},
		"504":                      {"delete", apierrors.NewTimeoutError("too slow", 1), true},
		"403":                      {"delete", apierrors.NewForbidden(resource, "a", errors.New("denied")), false},
		"409":                      {"delete", apierrors.NewConflict(resource, "a", errors.New("changed")), false},
		"429":                      {"delete", apierrors.NewTooManyRequests("busy", 1), false},
		"the list before it fails": {"list", errors.New("http2: client connection lost"), false},
	} {
		t.Run(name, func(t *testing.T) {
			inDisrupted(t, "30m", func(w *disrupted) {
				fails := true
				w.claims.PrependReactor(tc.verb, "nodeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
					return fails, nil, tc.err
				})
				err := w.reconcile("a")
				<-time.After(backoff.Initial) // the pause ends
				synctest.Wait()
				if err == nil || w.hasRoom("b") == tc.unknown {
					w.t.Errorf("%v; room for b: %v", err, w.hasRoom("b"))
				}
				if fails = false; !tc.unknown {
					return
				}
				if err := w.reconcile("b"); err != nil {
					w.t.Error(err)
				}
				go w.loop.Run(w.ctx, 2)
				<-time.After(deletionTimeout - time.Second)
				w.expectDeleted("a")
				<-time.After(2 * time.Second)
				synctest.Wait()
				if len(w.deleted()) != 2 {
					w.t.Errorf("the place is not given back: deleted %q", w.deleted())
				}
			})
		})
	}
}

// #62 The pods of the node were watched for its claim, which is not the node's any more.
func TestLabelRemovedEndsLook(t *testing.T) {
	for name, change := range map[string]func(*v1.Node){
		"no label":           func(n *v1.Node) { n.Labels, n.Finalizers = nil, nil },
		"another providerID": func(n *v1.Node) { n.Spec.ProviderID = "mock://other" },
	} {
		t.Run(name, func(t *testing.T) {
			inDisrupted(t, nil, func(w *disrupted) {
				w.pods.sight = drain.Sight{Known: true, Blocking: []termination.Left{{Pod: "ns/p"}}}
				if err := w.reconcile("a"); err != nil || w.disruptions.counts()[disruption.PodsBlock] != 1 {
					w.t.Errorf("%v, %v", err, w.disruptions.counts())
				}
				n := liveNode("a")
				change(n)
				w.cached(n)
				_ = w.reconcile("a")
				if !slices.Equal(w.pods.forgotten, []string{"a"}) || w.disruptions.counts()[disruption.PodsBlock] != 0 {
					w.t.Errorf("pods are watched: %q, %v", w.pods.forgotten, w.disruptions.counts())
				}
			})
		})
	}
}
