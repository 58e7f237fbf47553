package nodes

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

var nodeClaims = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

func (e *ending) claims() dynamic.ResourceInterface {
	e.T.Helper()
	client, err := dynamic.NewForConfig(e.Plane.RESTConfig())
	e.Must(err, "make client")
	return client.Resource(nodeClaims)
}

// claim creates a NodeClaim of the group.
func (e *ending) claim(name, group, period string) {
	e.T.Helper()
	more := ""
	if period != "" {
		more = "  terminationGracePeriod: " + period + "\n"
	}
	e.claimWith(name, group, more)
}

// claimWith creates a NodeClaim of the group with more lines of its spec.
func (e *ending) claimWith(name, group, more string) {
	e.T.Helper()
	text := fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: %s}
spec:
  nodeClassRef: {group: %s, kind: NodeClass, name: x}
  requirements: []
`, name, group) + more
	e.Must(sandbox.ApplyYAML(e.Ctx, e.Plane.RESTConfig(), []byte(text)), "create NodeClaim")
}

// getClaim returns the claim, nil if it is gone.
func (e *ending) getClaim(name string) *unstructured.Unstructured {
	e.T.Helper()
	one, err := e.claims().Get(e.Ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	e.Must(err, "read NodeClaim")
	return one
}

func claimDeleted(t *testing.T, e *ending) {
	name := e.take("15m")
	e.claim(name, termination.ClaimGroup, "20m")
	e.Until("the claim has the finalizer", func() bool { return termination.Protected(e.getClaim(name)) })
	e.pod(name, "web", annotated("cloudmock.exeunt.io/exit-after", "3s"))
	e.Must(e.claims().Delete(e.Ctx, name, metav1.DeleteOptions{}), "delete NodeClaim")
	e.Until("the first action is written", func() bool {
		return e.node(name).Annotations[termination.TimestampAnnotation] != ""
	})
	want := e.getClaim(name).GetDeletionTimestamp().Add(20 * time.Minute).UTC().Format(time.RFC3339)
	if got := e.node(name).Annotations[termination.TimestampAnnotation]; got != want {
		t.Errorf("the deadline is %s, want that of the claim, %s", got, want)
	}
	e.Until("the claim has the deadline", func() bool {
		claim := e.getClaim(name)
		return claim == nil || claim.GetAnnotations()[termination.ClaimTimestampAnnotation] == want
	})
	e.awaitGone(name)
	e.Until("the claim is gone", func() bool { return e.getClaim(name) == nil })
}

func claimGoesWithNode(_ *testing.T, e *ending) {
	name := e.take("15m")
	e.claim(name, termination.ClaimGroup, "")
	e.Until("the claim has the finalizer", func() bool { return termination.Protected(e.getClaim(name)) })
	e.Until("the claim names the node", func() bool {
		node, _, _ := unstructured.NestedString(e.getClaim(name).Object, "status", "nodeName")
		return node == name
	})
	e.pod(name, "web", annotated("cloudmock.exeunt.io/exit-after", "3s"))
	e.delete(name)
	e.awaitNodeEvent(name, "DeletionRequested") // #03: no deadline
	e.awaitGone(name)
	e.Until("the claim is gone", func() bool { return e.getClaim(name) == nil })
}

func claimWithoutLabel(t *testing.T, e *ending) {
	name := e.take("15m")
	e.label(name, "")
	e.Until("the finalizer is removed", func() bool { return !termination.Protected(e.node(name)) })
	e.claim(name, termination.ClaimGroup, "5s")
	e.Until("an event says why", func() bool {
		events, err := e.Client.CoreV1().Events(metav1.NamespaceAll).List(e.Ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.kind=NodeClaim,involvedObject.name=" + name})
		e.Must(err, "list events")
		return len(events.Items) > 0
	})
	e.Must(e.claims().Delete(e.Ctx, name, metav1.DeleteOptions{}), "delete NodeClaim")
	e.Until("the claim is gone", func() bool { return e.getClaim(name) == nil })
	if n := e.node(name); n == nil || n.DeletionTimestamp != nil || len(n.Spec.Taints) > 0 {
		t.Errorf("the node was touched: %v", n)
	}
}

func karpentersClaim(t *testing.T, e *ending) {
	name := e.take("5s")
	e.claim("karpenters-"+name, "karpenter.k8s.aws", "")
	body := fmt.Sprintf(`{"status":{"nodeName":%q}}`, name)
	_, err := e.claims().Patch(e.Ctx, "karpenters-"+name, mergePatch, []byte(body), metav1.PatchOptions{}, "status")
	e.Must(err, "patch status")
	pod := e.pod(name, "web")
	e.Until("our finalizer is removed", func() bool { return !termination.Protected(e.node(name)) })
	e.patch(name, `{"metadata":{"finalizers":["example.com/other"]}}`)
	e.delete(name)
	end := e.node(name).DeletionTimestamp.Add(8 * time.Second)
	e.Until("the deadline has passed", func() bool { return time.Now().After(end) })
	if n := e.node(name); n == nil || len(n.Annotations[termination.TimestampAnnotation]) > 0 || len(n.Spec.Taints) > 0 {
		t.Errorf("the node was touched: %v", n)
	}
	if now := e.getPod(pod.Name); now == nil || now.DeletionTimestamp != nil {
		t.Error("the pod was touched")
	}
	e.patch(name, `{"metadata":{"finalizers":null}}`)
}
