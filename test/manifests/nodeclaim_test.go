package manifests

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// nodeClaims returns the claims of a server that has our CRD.
func nodeClaims(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	server := startServer(t)
	for _, object := range kustomized(t, "node-terminator/nodeclaim") {
		if err := server.apply(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	claims := server.client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"})
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			_, err := claims.List(ctx, metav1.ListOptions{})
			return err == nil, nil
		})
	if err != nil {
		t.Fatal("the server does not serve NodeClaims")
	}
	return claims
}

// nodeClaim returns a claim of node-terminator with these fields of the spec.
func nodeClaim(name string, spec map[string]any) *unstructured.Unstructured {
	whole := map[string]any{"nodeClassRef": map[string]any{"group": "lifecycle.exeunt.io", "kind": "Node", "name": "any"}}
	for field, value := range spec {
		whole[field] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": name}, "spec": whole,
	}}
}

func TestNodeClaimsTakeThePeriodsOfTheDesign(t *testing.T) {
	claims := nodeClaims(t)
	for period, accepted := range map[string]bool{
		"30m": true, "1h30m": true, "0s": true, "9999999h": true,
		"1d": false, "-5m": false, "1.5h": false, "": false, "Never": false,
	} {
		_, err := claims.Create(t.Context(), nodeClaim("period", map[string]any{"terminationGracePeriod": period}),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if (err == nil) != accepted {
			t.Errorf("period %q: %v", period, err)
		}
	}
}

// Karpenter's CRD has a default of 720h, after which the node of a claim of ours would be deleted.
func TestNodeClaimKeepsItsFieldsAndGetsNoOthers(t *testing.T) {
	claims := nodeClaims(t)
	given := nodeClaim("whole", map[string]any{
		"terminationGracePeriod": "30m", "requirements": []any{map[string]any{"key": "a", "operator": "Exists"}},
		"later": map[string]any{"field": "kept"},
	})
	created, err := claims.Create(t.Context(), given, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if spec := created.Object["spec"].(map[string]any); len(spec) != 4 || spec["expireAfter"] != nil {
		t.Errorf("the spec is %v", spec)
	}
	condition := map[string]any{"type": "Drained", "status": "True", "reason": "Drained", "message": "",
		"lastTransitionTime": "2026-11-29T00:00:00Z"}
	created.Object["status"] = map[string]any{"nodeName": "whole", "providerID": "mock://a", "later": "kept",
		"conditions": []any{condition}}
	written, err := claims.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status := written.Object["status"].(map[string]any); len(status) != 4 {
		t.Errorf("the status is %v", status)
	}
}

// The period of a claim is fixed: a change could cut pods of a termination that runs.
func TestSpecOfNodeClaimIsImmutable(t *testing.T) {
	claims := nodeClaims(t)
	for name, tc := range map[string]struct{ before, after map[string]any }{
		"changed": {map[string]any{"terminationGracePeriod": "30m"}, map[string]any{"terminationGracePeriod": "10m"}},
		"added":   {nil, map[string]any{"terminationGracePeriod": "10m"}},
		"removed": {map[string]any{"terminationGracePeriod": "30m"}, nil},
	} {
		created, err := claims.Create(t.Context(), nodeClaim(name, tc.before), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		changed := nodeClaim(name, tc.after)
		changed.SetResourceVersion(created.GetResourceVersion())
		if _, err := claims.Update(t.Context(), changed, metav1.UpdateOptions{}); err == nil ||
			!strings.Contains(err.Error(), "spec is immutable") {
			t.Errorf("%s: %v", name, err)
		}
		created.SetFinalizers([]string{"exeunt.io/node-termination"})
		if _, err := claims.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
			t.Errorf("%s: the finalizer is refused: %v", name, err)
		}
	}
}
