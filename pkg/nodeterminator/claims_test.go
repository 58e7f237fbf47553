package nodeterminator

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

// claimWith returns a claim of the group with the T, nil for none.
func claimWith(name, group string, period any) *unstructured.Unstructured {
	spec := map[string]any{"nodeClassRef": map[string]any{"group": group, "kind": "NodeClass", "name": "x"}}
	if period != nil {
		spec["terminationGracePeriod"] = period
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
		"metadata": map[string]any{"name": name, "uid": "claim-" + name}, "spec": spec}}
}

func withStatus(c *unstructured.Unstructured, node, providerID string) *unstructured.Unstructured {
	c.Object["status"] = map[string]any{"nodeName": node, "providerID": providerID}
	return c
}

// claimsRead returns claims that were read.
func claimsRead(t *testing.T, all ...*unstructured.Unstructured) *Claims {
	t.Helper()
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &unstructured.Unstructured{}, 0, claimIndexers)
	for _, one := range all {
		if err := informer.GetStore().Add(one); err != nil {
			t.Fatal(err)
		}
	}
	return &Claims{known: true, informer: informer, synced: informer.HasSynced, changed: func(string) {}}
}

func labeledNode() *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{termination.Label: "30m"},
		CreationTimestamp: metav1.Time{Time: time.Unix(1000, 0)}}, Spec: v1.NodeSpec{ProviderID: "cloud://1"}}
}

func TestClaimOfNode(t *testing.T) {
	const ours, karpenters = termination.ClaimGroup, "karpenter.k8s.aws"
	deleted := claimWith("n", ours, "5m")
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1000, 0)})
	own := claimWith("n", ours, "5m")
	another := withStatus(claimWith("n", ours, "5m"), "n", "cloud://2")
	unlabel := func(n *v1.Node) { n.Labels = nil }
	finalized := func(n *v1.Node) { n.Finalizers = []string{karpenterFinalizer} }
	pooled := func(n *v1.Node) { n.Labels[karpenterPool] = "default" }
	of := func(node, providerID string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{withStatus(claimWith("x", karpenters, nil), node, providerID)}
	}
	for name, tc := range map[string]struct {
		claims      []*unstructured.Unstructured
		change      func(*v1.Node)
		own, others bool
	}{
		"no claim":                                {},
		"ours":                                    {claims: []*unstructured.Unstructured{own}, own: true},
		"ours, of another node":                   {claims: []*unstructured.Unstructured{claimWith("m", ours, "5m")}},
		"#06 another providerID":                  {claims: []*unstructured.Unstructured{another}},
		"#06 no label":                            {claims: []*unstructured.Unstructured{own}, change: unlabel},
		"#58 the node is younger":                 {claims: []*unstructured.Unstructured{deleted}},
		"#60 Karpenter's, by the name":            {claims: of("n", ""), others: true},
		"#60 Karpenter's, by the providerID":      {claims: of("", "cloud://1"), others: true},
		"#60 Karpenter's, beside ours":            {claims: append(of("n", ""), own), others: true},
		"#60 Karpenter's, by its finalizer":       {change: finalized, others: true},
		"#60 Karpenter's, by the label of a pool": {change: pooled, others: true},
	} {
		n := labeledNode()
		if tc.change != nil {
			tc.change(n)
		}
		own, others := claimsRead(t, tc.claims...).of(n)
		if (own != nil) != tc.own || others != tc.others {
			t.Errorf("%s: own %v, others %v", name, own, others)
		}
	}
}

func TestPeriodOfClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		period any
		want   deadline.Period
		bad    bool
	}{
		"a period":     {period: "30m", want: deadline.Limited(30 * time.Minute)},
		"#03 none":     {},
		"#05 too long": {period: "9999999h", bad: true},
		"#05 a day":    {period: "1d", bad: true},
		"#05 no text":  {period: int64(30), bad: true},
	} {
		got, err := (&claim{claimWith("n", termination.ClaimGroup, tc.period)}).period()
		if (err != nil) != tc.bad || !tc.bad && got != tc.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestUnreadableClaims(t *testing.T) {
	c := claimsRead(t)
	if !c.unreadable() { // the informer has not synced
		t.Error("claims that were never listed are readable")
	}
	c.informer, c.failed = nil, true
	if c.unreadable() {
		t.Error("without a definition there is nothing to read")
	}
	if (&Claims{}).unreadable() != true || (*Claims)(nil).unreadable() {
		t.Error("whether the definition exists is not known")
	}
}

// At the API server with graceful deletion the timestamp of a claim in its grace period is the deadline: a node that
// registered after the request is another one all the same.
func TestNodeYoungerThanGracefulDeletionIsAnother(t *testing.T) {
	deleted := claimWith("n", termination.ClaimGroup, "5m")
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(900+3600, 0)}) // requested at 900, node created at 1000
	seconds := int64(3600)
	deleted.SetDeletionGracePeriodSeconds(&seconds)
	if own, _ := claimsRead(t, deleted).of(labeledNode()); own != nil {
		t.Error("a node that registered 100 s after the deletion of the claim is taken for the claim's")
	}
}
