package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// The tests count the nodes that are being terminated, so each has the cloud for itself. One node is left for the pods of
// the cluster, whose budget would keep the last one.
func TestRowsOfDisruption(t *testing.T) {
	e := startEnding(t, 4, "--instances=none", "--max-disrupted=1")
	for _, row := range []struct {
		name string
		test func(*testing.T, *ending)
	}{
		{"#62 T set, one node at a time", driftedNodes},
		{"#62 no T, a pod blocks", expiredNode},
	} {
		t.Run(row.name, func(t *testing.T) { row.test(t, e.of(t)) })
	}
}

// drift says that the claim has drifted, as a program that compares machines with their claims does.
func (e *ending) drift(name string) {
	e.T.Helper()
	body := `{"status":{"conditions":[{"type":"Drifted","status":"True","reason":"Drifted","message":"",` +
		`"lastTransitionTime":"2026-11-29T12:00:00Z"}]}}`
	_, err := e.claims().Patch(e.Ctx, name, mergePatch, []byte(body), metav1.PatchOptions{}, "status")
	e.Must(err, "patch status")
}

// awaitClaimEvent waits for an event of the claim with these parts.
func (e *ending) awaitClaimEvent(name, reason string, parts ...string) {
	e.T.Helper()
	e.Until(fmt.Sprintf("claim %s has an event %s with %q", name, reason, parts), func() bool {
		events, err := e.Client.CoreV1().Events(metav1.NamespaceAll).List(e.Ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.kind=NodeClaim,reason=" + reason + ",involvedObject.name=" + name})
		e.Must(err, "list events")
		for _, event := range events.Items {
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(event.Message, part) }) {
				return true
			}
		}
		return false
	})
}

// isDeleted reports whether the node is gone, or is being deleted.
func (e *ending) isDeleted(name string) bool {
	n := e.node(name)
	return n == nil || n.DeletionTimestamp != nil
}

func driftedNodes(t *testing.T, e *ending) {
	names := []string{e.take("1h"), e.take("1h")}
	for _, name := range names {
		e.claim(name, termination.ClaimGroup, "20s")
		e.pod(name, "web", stuck) // keeps the node until its deadline, longer than an event waits
		e.Until("the claim has the finalizer", func() bool { return termination.Protected(e.getClaim(name)) })
	}
	for _, name := range names {
		e.drift(name)
	}
	e.Until("a node is being deleted", func() bool { return e.isDeleted(names[0]) || e.isDeleted(names[1]) })
	if e.isDeleted(names[1]) {
		slices.Reverse(names)
	}
	e.awaitClaimEvent(names[1], "DisruptionBlocked", "drifted", "node "+names[0]+" is being terminated")
	e.Until("both are gone", func() bool {
		second := e.isDeleted(names[1])
		if second && e.node(names[0]) != nil {
			t.Fatal("two nodes are being terminated at once")
		}
		return second && e.node(names[1]) == nil
	})
	for _, name := range names {
		e.Until("the claim is gone", func() bool { return e.getClaim(name) == nil })
	}
}

func expiredNode(t *testing.T, e *ending) {
	name := e.take("1h")
	blocking := e.pod(name, "web", annotated(pod.DoNotDisruptAnnotation, "true"))
	e.claimWith(name, termination.ClaimGroup, "  expireAfter: 1s\n")
	e.awaitClaimEvent(name, "DisruptionBlocked", "expired", "no terminationGracePeriod", "/"+blocking.Name+" ", "DoNotDisrupt")
	if e.isDeleted(name) {
		t.Error("the node is being deleted though a pod blocks")
	}
	_, err := e.Client.CoreV1().Pods(e.Namespace).Patch(e.Ctx, blocking.Name, mergePatch,
		[]byte(`{"metadata":{"annotations":{"`+pod.DoNotDisruptAnnotation+`":null}}}`), metav1.PatchOptions{})
	e.Must(err, "patch pod")
	e.awaitGone(name)
	e.Until("the claim is gone", func() bool { return e.getClaim(name) == nil })
}
