package nodeterminator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/disruption"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// disrupted is a world with nodes whose claims have drifted.
type disrupted struct {
	*world
	claims *dynamicfake.FakeDynamicClient
	nodes  *metadatafake.FakeMetadataClient
}

// inDisrupted runs the test with a controller whose nodes a, b and c have claims with this T, nil for none.
func inDisrupted(t *testing.T, period any, test func(w *disrupted)) {
	t.Helper()
	inWorld(t, func(plain *world) {
		w := &disrupted{world: plain}
		var stored []runtime.Object
		var claims []*unstructured.Unstructured
		for _, name := range []string{"a", "b", "c"} {
			one := drifted(claimWith(name, termination.ClaimGroup, period))
			claims, stored = append(claims, one), append(stored, one.DeepCopy())
			n := liveNode(name)
			if err := w.client.Tracker().Add(n); err != nil {
				t.Fatal(err)
			}
			w.cached(n)
		}
		w.claims = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
			map[schema.GroupVersionResource]string{claimResource: "NodeClaimList"}, stored...)
		scheme := metadatafake.NewTestScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		w.nodes = metadatafake.NewSimpleMetadataClient(scheme)
		w.Claims = claimsRead(t, claims...)
		w.Claims.synced = func() bool { return true }
		w.Claims.client, w.Claims.definitions = w.claims.Resource(claimResource), w.nodes
		w.MaxDisrupted = 1
		test(w)
	})
}

func drifted(one *unstructured.Unstructured) *unstructured.Unstructured {
	one.SetFinalizers([]string{termination.Finalizer})
	one.SetResourceVersion("7")
	one.Object["status"] = map[string]any{"nodeName": one.GetName(), "providerID": "mock://" + one.GetName(),
		"conditions": []any{map[string]any{"type": "Drifted", "status": "True"}}}
	return one
}

// liveNode is a node that is served and was seen running.
func liveNode(name string) *v1.Node {
	n := deletedNode(name, "30m", time.Now())
	n.DeletionTimestamp, n.DeletionGracePeriodSeconds = nil, nil
	n.Annotations = map[string]string{termination.InstanceAnnotation: n.Spec.ProviderID}
	return n
}

// deleted returns the claims that were deleted.
func (w *disrupted) deleted() (names []string) {
	for _, action := range w.claims.Actions() {
		if one, is := action.(clienttesting.DeleteAction); is {
			names = append(names, one.GetName())
		}
	}
	return names
}

// change changes the cached claim.
func (w *disrupted) change(name string, change func(*unstructured.Unstructured)) {
	w.t.Helper()
	one := w.Claims.named(name).DeepCopy()
	change(one)
	if err := w.Claims.informer.GetStore().Update(one); err != nil {
		w.t.Fatal(err)
	}
}

func (w *disrupted) reconcile(names ...string) (last error) {
	for _, name := range names {
		if err := w.Reconcile(w.t.Context(), name); err != nil {
			last = err
		}
	}
	return last
}

func (w *disrupted) expectDeleted(names ...string) {
	w.t.Helper()
	if got := w.deleted(); !slices.Equal(got, names) {
		w.t.Errorf("deleted %q, want %q", got, names)
	}
}

// #62 T set: pods are not asked, and one node goes after the other.
func TestOneDriftedNodeIsReplacedAtATime(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		w.pods.sight = drain.Sight{Known: true, Blocking: []termination.Left{{Pod: "ns/p"}}}
		go w.loop.Run(w.ctx, 3)
		for _, name := range []string{"a", "b", "c"} {
			w.Notify(name)
		}
		<-time.After(time.Minute)
		if len(w.deleted()) != 1 || w.pods.looks > 0 {
			w.t.Fatalf("deleted %q after %d looks", w.deleted(), w.pods.looks)
		}
		first := w.deleted()[0]
		now := metav1.Now()
		w.change(first, func(one *unstructured.Unstructured) { one.SetDeletionTimestamp(&now) })
		w.enqueueClaimed(first)
		<-time.After(time.Minute)
		if len(w.deleted()) != 1 {
			w.t.Fatalf("the claim of one node is being deleted: deleted %q", w.deleted())
		}
		ending := deletedNode(first, "30m", time.Now())
		w.cached(ending)
		w.enqueueWaiting()
		<-time.After(time.Minute)
		if len(w.deleted()) != 1 || w.disruptions.counts()[disruption.OthersTerminate] != 2 {
			w.t.Fatalf("one node is being deleted: deleted %q, %v", w.deleted(), w.disruptions.counts())
		}
		if err := errors.Join(w.caches.Nodes.GetStore().Delete(ending),
			w.Claims.informer.GetStore().Delete(w.Claims.named(first).Unstructured)); err != nil {
			w.t.Fatal(err)
		}
		w.enqueueWaiting()
		<-time.After(time.Minute)
		if len(w.deleted()) != 2 {
			w.t.Errorf("the node is gone: deleted %q", w.deleted())
		}
	})
}

// #62 nil: a node waits for its pods, which are watched, and does not keep others from going.
func TestDriftedNodeWithoutPeriodWaitsForPods(t *testing.T) {
	inDisrupted(t, nil, func(w *disrupted) {
		w.pods.sight = drain.Sight{}
		if err := w.reconcile("a"); err != nil || w.disruptions.counts()[disruption.PodsUnknown] != 1 {
			w.t.Errorf("%v, %v", err, w.disruptions.counts())
		}
		w.pods.sight = drain.Sight{Known: true, Blocking: []termination.Left{{Pod: "ns/p", Reason: "DoNotDisrupt"}}}
		if err := w.reconcile("a"); err != nil || w.disruptions.counts()[disruption.PodsBlock] != 1 {
			w.t.Errorf("%v, %v", err, w.disruptions.counts())
		}
		w.expectDeleted()
		w.pods.sight.Blocking = nil
		if err := w.reconcile("b", "a"); err != nil {
			w.t.Error(err)
		}
		w.expectDeleted("b")
		if counts := w.disruptions.counts(); counts[disruption.OthersTerminate] != 1 || counts[disruption.PodsBlock] != 0 {
			w.t.Errorf("a waits for %v", counts)
		}
		if !slices.Equal(w.pods.forgotten, []string{"a"}) {
			w.t.Errorf("pods are watched though they decide nothing: %q", w.pods.forgotten)
		}
	})
}

// #62 The cache of a new leader is older than what the former leader deleted.
func TestStaleCacheReplacesNoSecondNode(t *testing.T) {
	for name, show := range map[string]func(w *disrupted) error{
		"the Node": func(w *disrupted) error {
			n := deletedNode("b", "30m", time.Now())
			return w.nodes.Tracker().Add(&metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: n.ObjectMeta})
		},
		"a Node that lost its label": func(w *disrupted) error {
			n := deletedNode("z", "30m", time.Now())
			n.Labels = nil
			return w.nodes.Tracker().Add(&metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: n.ObjectMeta})
		},
		"the claim": func(w *disrupted) error {
			one, now := w.Claims.named("b").DeepCopy(), metav1.Now()
			one.SetDeletionTimestamp(&now)
			return errors.Join(w.claims.Tracker().Update(claimResource, one, ""),
				w.nodes.Tracker().Add(&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
					ObjectMeta: liveNode("b").ObjectMeta}))
		},
	} {
		inDisrupted(t, "30m", func(w *disrupted) {
			if err := show(w); err != nil {
				w.t.Fatal(err)
			}
			if err := w.reconcile("a"); !errors.Is(err, controller.ErrStaleCache) {
				w.t.Errorf("%s: %v", name, err)
			}
			w.expectDeleted()
		})
	}
}

// #62 The claim is deleted as it was observed: by UID and version.
func TestDisruptionIsGuarded(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		refuse := true
		w.claims.PrependReactor("delete", "nodeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
			guard := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
			if guard == nil || guard.UID == nil || *guard.UID != "claim-a" || guard.ResourceVersion == nil ||
				*guard.ResourceVersion != "7" {
				w.t.Errorf("preconditions %+v", guard)
			}
			return refuse, nil, apierrors.NewForbidden(claimResource.GroupResource(), "a", errors.New("a webhook refuses"))
		})
		if err := w.reconcile("a"); err == nil || len(w.terminatingBut("b")) > 0 {
			w.t.Errorf("%v; the place was not given back: %v", err, w.terminatingBut("b"))
		}
		refuse = false
		<-time.After(backoff.Initial)
		synctest.Wait()
		if err := w.reconcile("a"); err != nil || !slices.Equal(w.terminatingBut("b"), []string{"a"}) {
			w.t.Errorf("%v; %v", err, w.terminatingBut("b"))
		}
		w.Leading = func() bool { return false }
		if _, err := w.live(w.t.Context(), liveNode("a")); err == nil {
			w.t.Error("a former leader reads on")
		}
	})
}

// #62 Nothing but these keeps a node: each is told once, with the name of what it waits for.
// store changes Node a in the API server, and not in the cache.
func (w *disrupted) store(change func(*v1.Node)) {
	n := liveNode("a")
	change(n)
	if err := w.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), n, ""); err != nil {
		w.t.Error(err)
	}
}

func TestDisruptionIsKept(t *testing.T) {
	annotated := map[string]string{pod.DoNotDisruptAnnotation: "true"}
	for name, tc := range map[string]struct {
		change  func(w *disrupted)
		deleted bool
	}{
		"drifted":         {func(*disrupted) {}, true},
		"none may go":     {func(w *disrupted) { w.MaxDisrupted = 0 }, false},
		"not drifted yet": {func(w *disrupted) { w.change("a", isAt("False")) }, false},
		"the Node says do-not-disrupt": {func(w *disrupted) {
			n := liveNode("a")
			n.Annotations[pod.DoNotDisruptAnnotation] = "true"
			w.cached(n)
		}, false},
		"the claim says do-not-disrupt": {func(w *disrupted) {
			w.change("a", func(one *unstructured.Unstructured) { one.SetAnnotations(annotated) })
		}, false},
		"the Node says so since": {func(w *disrupted) {
			w.store(func(n *v1.Node) { n.Annotations[pod.DoNotDisruptAnnotation] = "true" })
		}, false},
		"the Node lost its label since": {func(w *disrupted) {
			w.store(func(n *v1.Node) { n.Labels = nil })
		}, false},
		"#60 Karpenter's": {func(w *disrupted) {
			n := liveNode("a")
			n.Labels[karpenterPool] = "default"
			w.cached(n)
		}, false},
	} {
		inDisrupted(t, "30m", func(w *disrupted) {
			tc.change(w)
			if err := w.reconcile("a"); err != nil && !errors.Is(err, controller.ErrStaleCache) {
				w.t.Errorf("%s: %v", name, err)
			}
			if got := len(w.deleted()) > 0; got != tc.deleted {
				w.t.Errorf("%s: deleted %v", name, got)
			}
		})
	}
}

func isAt(status string) func(*unstructured.Unstructured) {
	return func(one *unstructured.Unstructured) {
		one.Object["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Drifted", "status": status}}
	}
}

// #62 expireAfter counts from the creation of the claim. A text that cannot be read expires nothing.
func TestClaimExpires(t *testing.T) {
	created := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		expireAfter any
		status      string
		now         time.Time
		cause       disruption.Cause
		next        time.Time
		bad         bool
	}{
		"no expireAfter":            {now: created.Add(time.Hour)},
		"never":                     {expireAfter: "Never", now: created.Add(time.Hour)},
		"not yet":                   {expireAfter: "1h", now: created, next: created.Add(time.Hour)},
		"at its time":               {expireAfter: "1h", now: created.Add(time.Hour), cause: disruption.Expired},
		"later":                     {expireAfter: "1h", now: created.Add(2 * time.Hour), cause: disruption.Expired},
		"unreadable":                {expireAfter: "1d", now: created.Add(time.Hour), bad: true},
		"too long":                  {expireAfter: "9999999h", now: created, bad: true},
		"drifted":                   {status: "True", now: created, cause: disruption.Drifted},
		"drifted, not expired":      {expireAfter: "1h", status: "True", now: created, cause: disruption.Drifted},
		"drifted, unreadable":       {expireAfter: "1d", status: "True", now: created, cause: disruption.Drifted, bad: true},
		"was drifted":               {status: "False", now: created},
		"whether is not known":      {status: "Unknown", now: created},
		"a field of another type":   {expireAfter: int64(3), now: created},
		"never, however old it is ": {expireAfter: "Never", now: created.Add(1 << 60)},
	} {
		one := drifted(claimWith("n", termination.ClaimGroup, nil))
		one.SetCreationTimestamp(metav1.NewTime(created))
		isAt(tc.status)(one)
		if tc.expireAfter != nil {
			one.Object["spec"].(map[string]any)["expireAfter"] = tc.expireAfter
		}
		cause, next, err := (&claim{one}).cause(tc.now)
		if cause != tc.cause || !next.Equal(tc.next) || (err != nil) != tc.bad {
			t.Errorf("%s: %v, %v, %v", name, cause, next, err)
		}
	}
}

// #62 A claim that expires in an hour is looked at in an hour.
func TestNodeGoesWhenItsClaimExpires(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		w.change("a", func(one *unstructured.Unstructured) {
			isAt("False")(one)
			one.SetCreationTimestamp(metav1.Now())
			one.Object["spec"].(map[string]any)["expireAfter"] = "1h"
		})
		go w.loop.Run(w.ctx, 1)
		w.Notify("a")
		<-time.After(59 * time.Minute)
		w.expectDeleted()
		<-time.After(2 * time.Minute)
		synctest.Wait()
		w.expectDeleted("a")
	})
}

// #62 The event says on whom a node waits.
func TestEventNamesWhomANodeWaitsFor(t *testing.T) {
	inDisrupted(t, nil, func(w *disrupted) {
		w.cached(deletedNode("b", "30m", time.Now()))
		one, told := w.Claims.named("a"), make(chan string, 10)
		w.reporter = controller.NewReporter(recorder(told))
		if w.disruptionWrite(liveNode("a"), one) != nil {
			w.t.Error("the claim is deleted")
		}
		<-time.After(patience + time.Second)
		expectTold(w.t, told, "DisruptionBlocked", "drifted", "node b is being terminated", "--max-disrupted is 1")
		w.MaxDisrupted = 2
		w.pods.sight = drain.Sight{Known: true, Blocking: []termination.Left{
			{Pod: "ns/p", Reason: "BudgetBlocks", Holder: "ns/web"}, {Pod: "ns/q"}}}
		if w.disruptionWrite(liveNode("a"), one) != nil {
			w.t.Error("the claim is deleted")
		}
		<-time.After(patience + time.Second)
		expectTold(w.t, told, "no terminationGracePeriod", "pod ns/p", "BudgetBlocks ns/web", "1 more")
		w.pods.sight.Blocking = nil
		if err := w.disruptionWrite(liveNode("a"), one)(context.Background()); err != nil {
			w.t.Error(err)
		}
		expectTold(w.t, told, "DisruptionTerminating", "drifted")
	})
}

func expectTold(t *testing.T, told chan string, parts ...string) {
	t.Helper()
	select {
	case event := <-told:
		for _, part := range parts {
			if !strings.Contains(event, part) {
				t.Errorf("the event %q lacks %q", event, part)
			}
		}
	default:
		t.Errorf("no event %q", parts)
	}
}
