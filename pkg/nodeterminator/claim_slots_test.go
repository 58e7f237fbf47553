package nodeterminator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// A claim of T 1m is deleted while nodes get the label and a webhook takes 10 s for each patch of a Node.
func TestWebhookOfOtherNodesDelaysNoClaim(t *testing.T) {
	inDisrupted(t, "1m", func(w *disrupted) {
		w.MaxDisrupted = 0
		w.Client = slowNodes{w.client, 10 * time.Second}
		go w.work(w.ctx, 50)
		for i := range 200 {
			n := labeledNode()
			n.Name = fmt.Sprint("other-", i)
			n.UID = types.UID(n.Name)
			n.Spec.ProviderID = "mock://" + n.Name
			w.cached(n)
			w.Notify(n.Name)
		}
		<-time.After(time.Second)
		began := time.Now()
		deleted := time.Hour
		w.before("delete", "nodes", func(clienttesting.Action) { deleted = time.Since(began) })
		at := metav1.NewTime(time.Now())
		w.change("a", func(one *unstructured.Unstructured) { one.SetDeletionTimestamp(&at) })
		one := w.Claims.named("a").DeepCopy()
		if err := w.claims.Tracker().Update(claimResource, one, ""); err != nil {
			t.Fatal(err)
		}
		w.Notify("a")
		<-time.After(5 * time.Minute)
		if deleted > time.Second {
			t.Errorf("the Node was deleted after %v", deleted)
		}
	})
}

// unprotected has Node a and its claim without our finalizer, in the API server and in the cache.
func (w *disrupted) unprotected() {
	w.t.Helper()
	w.change("a", func(one *unstructured.Unstructured) { one.SetFinalizers(nil) })
	n := liveNode("a")
	n.Finalizers = nil
	w.store(func(n *v1.Node) { n.Finalizers = nil })
	w.cached(n)
}

func (w *disrupted) expectProtected() {
	w.t.Helper()
	live, err := w.client.CoreV1().Nodes().Get(w.t.Context(), "a", metav1.GetOptions{})
	if err != nil || !termination.Protected(live) {
		w.t.Errorf("the Node has no finalizer: %v", err)
	}
}

// A policy refuses each write of the claim: without our finalizer, a DELETE would end the Node undrained.
func TestRefusedClaimKeepsNoNodeUnprotected(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		w.MaxDisrupted = 0
		w.unprotected()
		refused := 0
		w.claims.PrependReactor("patch", "nodeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			refused++
			return true, nil, apierrors.NewForbidden(claimResource.GroupResource(), "a", errors.New("a policy refuses"))
		})
		if err := w.reconcile("a"); err == nil || refused == 0 {
			w.t.Errorf("the claim was written %d times, %v", refused, err)
		}
		w.expectProtected()
	})
}

// slowClaims is a client whose patches of NodeClaims a webhook delays by this time.
type slowClaims struct {
	dynamic.NamespaceableResourceInterface
	takes time.Duration
}

func (s slowClaims) Patch(ctx context.Context, name string, kind types.PatchType, body []byte,
	options metav1.PatchOptions, subresources ...string) (*unstructured.Unstructured, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.NamespaceableResourceInterface.Patch(ctx, name, kind, body, options, subresources...)
}

// A webhook takes 30 s for each write of a claim. A Node with a claim gets the label while 300 others are adopted.
func TestSlowClaimsDelayNoProtection(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		w.MaxDisrupted = 0
		w.Claims.client = slowClaims{w.Claims.client, 30 * time.Second}
		w.driftedNodes(300, "30m")
		for i := range 300 {
			w.change(fmt.Sprintf("n%03d", i), func(one *unstructured.Unstructured) { one.SetFinalizers(nil) })
		}
		for i := range 300 {
			go func() { _ = w.Reconcile(w.ctx, fmt.Sprintf("n%03d", i)) }()
		}
		<-time.After(time.Second)
		w.unprotected()
		go func() { _ = w.Reconcile(w.ctx, "a") }()
		<-time.After(time.Second)
		w.expectProtected()
	})
}

// hangingDeletes is a client whose deletions of Nodes are not answered.
type hangingDeletes struct{ kubernetes.Interface }

func (h hangingDeletes) CoreV1() corev1.CoreV1Interface { return hangingCore{h.Interface.CoreV1()} }

type hangingCore struct{ corev1.CoreV1Interface }

func (h hangingCore) Nodes() corev1.NodeInterface { return hangingNodes{h.CoreV1Interface.Nodes()} }

type hangingNodes struct{ corev1.NodeInterface }

func (hangingNodes) Delete(ctx context.Context, _ string, _ metav1.DeleteOptions) error {
	<-ctx.Done()
	return ctx.Err()
}

// A webhook holds our DELETE of the Node, whose claim is being deleted, and somebody else deletes the Node meanwhile.
func TestHangingDeletionDelaysNoStop(t *testing.T) {
	inDisrupted(t, "10s", func(w *disrupted) {
		w.MaxDisrupted = 0
		w.pods.result.Pods = node.Awaited
		live := w.claimDeleted("a")
		nodes := v1.SchemeGroupVersion.WithResource("nodes")
		if err := errors.Join(w.claims.Tracker().Update(claimResource, w.Claims.named("a").DeepCopy(), ""),
			w.client.Tracker().Update(nodes, live, "")); err != nil {
			t.Fatal(err)
		}
		w.Client = hangingDeletes{w.client}
		go w.work(w.ctx, 10)
		w.Notify("a")
		<-time.After(3 * time.Second)
		n := deletedNode("a", "30m", time.Now())
		n.CreationTimestamp, n.Annotations = live.CreationTimestamp, live.Annotations
		if err := w.client.Tracker().Update(nodes, n, ""); err != nil {
			t.Fatal(err)
		}
		w.cached(n)
		w.nodeChanged(live, n)
		<-time.After(11 * time.Second)
		if !slices.Contains(w.machines.called(), "stop mock://a") {
			w.t.Errorf("Stop was not called: %q", w.machines.called())
		}
	})
}
