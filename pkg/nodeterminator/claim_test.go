package nodeterminator

import (
	"errors"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

// A webhook may deny a deletion with the code of an object that is gone. No event of the object follows, so the machine
// of the node ran on.
func TestDeletionDeniedAsNotFoundIsRepeated(t *testing.T) {
	for _, resource := range []string{"nodeclaims", "nodes"} {
		for name, gone := range map[string]bool{"lives": false, "is gone": true} {
			t.Run(resource+", the object "+name, func(t *testing.T) {
				inDisrupted(t, "30m", func(w *disrupted) { expectDeletionRepeated(t, w, resource, gone) })
			})
		}
	}
}

func expectDeletionRepeated(t *testing.T, w *disrupted, resource string, gone bool) {
	t.Helper()
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: resource}, "a")
	denied := false
	deny := func(clienttesting.Action) (bool, runtime.Object, error) {
		denied = true
		return true, nil, absent
	}
	n := liveNode("a")
	one, _ := w.Claims.of(n)
	var err error
	if resource == "nodes" {
		w.client.PrependReactor("delete", "nodes", deny)
		deleted := one.DeepCopy()
		deleted.SetDeletionTimestamp(new(metav1.NewTime(n.CreationTimestamp.Add(time.Hour))))
		w.claims.PrependReactor("get", "nodeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, deleted, nil
		})
		if gone {
			w.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return denied, nil, absent
			})
		}
		err = w.deleteNode(t.Context(), n, one)
	} else {
		w.claims.PrependReactor("delete", "nodeclaims", deny)
		if gone {
			w.claims.PrependReactor("get", "nodeclaims", deny)
		}
		err = w.deleteClaim(t.Context(), one)
	}
	if (err == nil) != gone {
		t.Errorf("the deletion that was answered with 404: %v", err)
	}
}

// reconcileStored reconciles Node a, of which the API server has n and its claim, and reports whether a Node was deleted.
func (w *disrupted) reconcileStored(n *v1.Node, one *unstructured.Unstructured) (bool, error) {
	w.t.Helper()
	if err := errors.Join(w.claims.Tracker().Update(claimResource, one, ""),
		w.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), n, "")); err != nil {
		w.t.Fatal(err)
	}
	err := w.reconcile("a")
	return slices.ContainsFunc(w.client.Actions(), func(action clienttesting.Action) bool {
		return action.Matches("delete", "nodes")
	}), err
}

// #01 #06 The cache of the Node is old. Without its finalizer the Node goes at once: its pods are not drained, and the
// machine runs on with their disks.
func TestStaleCacheDeletesNoReleasedNode(t *testing.T) {
	for name, tc := range map[string]struct {
		node    func(*v1.Node)
		claim   func(*unstructured.Unstructured)
		former  bool
		deleted bool
	}{
		"as observed":                {deleted: true},
		"released":                   {node: func(n *v1.Node) { n.Labels, n.Finalizers, n.Annotations = nil, nil, nil }},
		"without the finalizer":      {node: func(n *v1.Node) { n.Finalizers = nil }},
		"without the label":          {node: func(n *v1.Node) { n.Labels = nil }},
		"an unreadable label":        {node: func(n *v1.Node) { n.Labels[termination.Label] = "1d" }},
		"#60 Karpenter's":            {node: func(n *v1.Node) { n.Labels[karpenterPool] = "default" }},
		"#60 Karpenter finalizes":    {node: func(n *v1.Node) { n.Finalizers = append(n.Finalizers, karpenterFinalizer) }},
		"#06 the claim is another's": {claim: func(one *unstructured.Unstructured) { withStatus(one, "a", "mock://b") }},
		"the leader was replaced":    {former: true},
	} {
		t.Run(name, func(t *testing.T) {
			inDisrupted(t, "30m", func(w *disrupted) {
				old := w.claimDeleted("a")
				n, one := old.DeepCopy(), w.Claims.named("a").DeepCopy()
				if tc.node != nil {
					tc.node(n)
				}
				if tc.claim != nil {
					tc.claim(one)
				}
				w.Leading = func() bool { return !tc.former }
				deleted, err := w.reconcileStored(n, one)
				if deleted != tc.deleted || (err == nil) != tc.deleted {
					w.t.Errorf("deleted %v, %v", deleted, err)
				}
			})
		})
	}
}

// claimDeleted has the caches show that the claim of the Node, which is an hour old, was deleted now.
func (w *disrupted) claimDeleted(name string) *v1.Node {
	w.t.Helper()
	now, n := metav1.Now(), liveNode(name)
	n.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	w.cached(n)
	w.change(name, func(one *unstructured.Unstructured) { one.SetDeletionTimestamp(&now) })
	return n
}

// #01 The DELETE of the Node has the UID and the version of the live read before it.
func TestNodeIsDeletedAsItWasRead(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		n := w.claimDeleted("a")
		later := n.DeepCopy()
		later.ResourceVersion = "8"
		if err := errors.Join(w.claims.Tracker().Update(claimResource, w.Claims.named("a").DeepCopy(), ""),
			w.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("nodes"), later, "")); err != nil {
			t.Fatal(err)
		}
		guards := 0
		w.before("delete", "nodes", func(action clienttesting.Action) {
			guard := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
			if guards++; guard == nil || guard.UID == nil || *guard.UID != "uid-a" || guard.ResourceVersion == nil ||
				*guard.ResourceVersion != "8" {
				w.t.Errorf("preconditions %+v", guard)
			}
		})
		if err := w.reconcile("a"); err != nil || guards != 1 {
			w.t.Errorf("%v, %d DELETE requests", err, guards)
		}
	})
}

// A Node that is not served never gets our finalizer, so nothing would ever release its claim, and drifted nodes would
// wait for it.
func TestClaimOfUnservedNodeIsReleased(t *testing.T) {
	for name, change := range map[string]func(n *v1.Node, one *unstructured.Unstructured){
		"#61 control plane": func(n *v1.Node, _ *unstructured.Unstructured) {
			n.Labels["node-role.kubernetes.io/control-plane"] = ""
		},
		"#05 T 9999999h": func(_ *v1.Node, one *unstructured.Unstructured) {
			one.Object["spec"].(map[string]any)["terminationGracePeriod"] = "9999999h"
		},
		"#05 label 1d":    func(n *v1.Node, _ *unstructured.Unstructured) { n.Labels[termination.Label] = "1d" },
		"#60 Karpenter's": func(n *v1.Node, _ *unstructured.Unstructured) { n.Labels[karpenterPool] = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			inDisrupted(t, "30m", func(w *disrupted) { expectUnservedClaimReleased(w, change) })
		})
	}
}

func expectUnservedClaimReleased(w *disrupted, change func(n *v1.Node, one *unstructured.Unstructured)) {
	w.t.Helper()
	told := make(chan string, 10)
	w.reporter = controller.NewReporter(recorder(told))
	n, one := liveNode("b"), w.Claims.named("b").DeepCopy()
	n.CreationTimestamp, n.Finalizers = metav1.NewTime(time.Now().Add(-time.Hour)), nil
	one.SetFinalizers(nil)
	change(n, one)
	w.cached(n)
	stored := func(finalizers ...string) []string {
		one.SetFinalizers(finalizers)
		err := errors.Join(w.Claims.informer.GetStore().Update(one.DeepCopy()),
			w.claims.Tracker().Update(claimResource, one.DeepCopy(), ""))
		err = errors.Join(err, w.reconcile("b"))
		live, readErr := w.claims.Resource(claimResource).Get(w.t.Context(), "b", metav1.GetOptions{})
		if err = errors.Join(err, readErr); err != nil {
			w.t.Fatal(err)
		}
		return live.GetFinalizers()
	}
	if got := stored(); len(got) > 0 {
		w.t.Errorf("the claim that lives got %q", got)
	}
	for len(told) > 1 { // the label may be told of first
		<-told
	}
	expectTold(w.t, told, claimUnmatched, "The node is not touched")
	one.SetDeletionTimestamp(new(metav1.Now()))
	if got := stored(termination.Finalizer); len(got) > 0 {
		w.t.Errorf("the claim that is being deleted keeps %q", got)
	}
}

// A claim that cannot be released keeps no drifted node: live reads count what the cache counts.
func TestClaimOfUnservedNodeKeepsNoOthers(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		n, one := liveNode("b"), w.Claims.named("b").DeepCopy()
		n.CreationTimestamp, n.Finalizers = metav1.NewTime(time.Now().Add(-time.Hour)), nil
		w.cached(n)
		one.SetDeletionTimestamp(new(metav1.Now()))
		if err := errors.Join(w.Claims.informer.GetStore().Update(one.DeepCopy()),
			w.claims.Tracker().Update(claimResource, one, "")); err != nil {
			w.t.Fatal(err)
		}
		if err := w.reconcile("a"); err != nil {
			w.t.Error(err)
		}
		w.expectDeleted("a")
	})
}

// After an upgrade of the API server an informer has a claim in its grace period as the one before served it: the
// deletion timestamp there is the request, and the deadline now.
func TestClaimIsReleasedAsServedNow(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		n := liveNode("a")
		one, _ := w.Claims.of(n)
		cached := one.DeepCopy()
		cached.SetFinalizers([]string{"example.com/other", termination.Finalizer})
		cached.SetDeletionTimestamp(new(metav1.NewTime(n.CreationTimestamp.Add(time.Hour))))
		live := cached.DeepCopy()
		live.SetDeletionTimestamp(new(metav1.NewTime(n.CreationTimestamp.Add(2 * time.Hour))))
		live.SetDeletionGracePeriodSeconds(new(int64(3600)))
		if err := w.claims.Tracker().Update(claimResource, live, ""); err != nil {
			t.Fatal(err)
		}
		if err := w.releaseClaim(t.Context(), &claim{cached}); err != nil {
			t.Error(err)
		}
		after, err := w.claims.Tracker().Get(claimResource, "", live.GetName())
		if left, ok := after.(*unstructured.Unstructured); err != nil || !ok ||
			slices.Contains(left.GetFinalizers(), termination.Finalizer) {
			t.Errorf("%v, %v", after, err)
		}
	})
}
