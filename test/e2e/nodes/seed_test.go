package nodes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// TestThreePodsOfOneBudget is the example of the seed: three nodes with a pod each, of one budget, are deleted at once.
func TestThreePodsOfOneBudget(t *testing.T) {
	t.Parallel()
	rows(t, startEnding(t, 8, "--instances=none"), map[string]func(*testing.T, *ending){
		"#30 replacements are ready":       replacementsReady,
		"#31 replacements are never ready": replacementsNeverReady,
	})
}

// seed is the three pods, each on a node of its own.
type seed struct {
	*ending
	app   string
	pods  []v1.Pod
	nodes []string
	uids  []types.UID
}

const seedManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: APP, namespace: NAMESPACE}
spec:
  replicas: 3
  selector: {matchLabels: {app: APP}}
  template:
    metadata: {labels: {app: APP}, annotations: {ANNOTATION}}
    spec:
      terminationGracePeriodSeconds: GRACE
      nodeSelector: {APP: ""}
      containers: [{name: main, image: image}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: APP, namespace: NAMESPACE}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: APP}}}
`

// plant creates the three pods on nodes with the period.
func (e *ending) plant(app, period, annotation string, grace int) *seed {
	e.T.Helper()
	s := &seed{ending: e, app: app}
	for range 3 {
		name := e.take(period)
		e.fit(name, app)
		s.nodes, s.uids = append(s.nodes, name), append(s.uids, e.node(name).UID)
	}
	e.apply(strings.NewReplacer("APP", app, "ANNOTATION", annotation, "GRACE", fmt.Sprint(grace)).Replace(seedManifest))
	s.pods = e.awaitReady(app, 3)
	on := map[string]bool{}
	for _, pod := range s.pods {
		on[pod.Spec.NodeName] = true
	}
	if len(on) != 3 {
		e.T.Fatalf("the pods are on %v, want one on each node", on)
	}
	for _, name := range s.nodes { // no replacement comes between DELETE and taint
		e.unfit(name, app)
	}
	e.Until("the budget has room", func() bool {
		budget, err := e.Client.PolicyV1().PodDisruptionBudgets(e.Namespace).Get(e.Ctx, app, metav1.GetOptions{})
		e.Must(err, "read budget")
		return budget.Status.DisruptionsAllowed == 1
	})
	return s
}

// fit lets pods of the app onto the node.
func (e *ending) fit(node, app string) {
	e.T.Helper()
	e.patch(node, fmt.Sprintf(`{"metadata":{"labels":{%q:""}}}`, app))
}

// unfit keeps further pods of the app from the node.
func (e *ending) unfit(node, app string) {
	e.T.Helper()
	e.patch(node, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, app))
}

// end deletes the nodes, and returns when the last DELETE was answered.
func (s *seed) end() time.Time {
	s.T.Helper()
	for _, name := range s.nodes {
		s.delete(name)
	}
	return time.Now()
}

// reports waits for the reports of the three nodes.
func (s *seed) reports() (counts termination.Counts, cut []termination.CutShort) {
	s.T.Helper()
	for i, name := range s.nodes {
		s.awaitGone(name)
		report := s.awaitPhase(s.uids[i], termination.PhaseEnded)
		counts.Evicted += report.Counts.Evicted
		counts.Deleted += report.Counts.Deleted
		counts.CutShort += report.Counts.CutShort
		cut = append(cut, report.CutShort...)
	}
	return counts, cut
}

// show logs what happened to the pods, and their events.
func (s *seed) show(since time.Time) {
	s.T.Helper()
	for _, pod := range s.pods {
		for _, event := range s.Events(machines.Event{UID: pod.UID}) {
			s.T.Logf("%6.2f s  %s  %s", event.Time.Sub(since).Seconds(), event.Pod, event.Event)
		}
	}
	events, err := s.Client.CoreV1().Events(s.Namespace).List(s.Ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod"})
	s.Must(err, "list events")
	for _, event := range events.Items {
		if strings.HasPrefix(event.InvolvedObject.Name, s.app) {
			s.T.Logf("event  %s  %s: %s", event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
}

// replacementsReady has replacements that are ready after 3 s: the pods go one after the other, with time left.
func replacementsReady(t *testing.T, e *ending) {
	const ready = 3 * time.Second
	s := e.plant("ready", "15m", "cloudmock.exeunt.io/ready-after: 3s", 600)
	e.fit(e.pick(), s.app)
	since := s.end()
	terms := e.sigterms(s.pods)
	counts, cut := s.reports()
	s.show(since)
	if first := terms[0].Time.Sub(since); first > 3*time.Second {
		t.Errorf("the first pod got SIGTERM after %v", first)
	}
	for i := range 2 {
		if apart := harness.Elapsed(terms[i], terms[i+1]); apart < ready || apart > ready+3*time.Second {
			t.Errorf("pod %d got SIGTERM %v after the one before, want %v", i+2, apart, ready)
		}
	}
	if counts != (termination.Counts{Evicted: 3}) || len(cut) > 0 {
		t.Errorf("the reports have %+v, %+v", counts, cut)
	}
}

// replacementsNeverReady has no node for replacements: the first pod goes at once, and two from L on, with their whole
// grace period. T = 26 s, so P = 21 s and L = 13 s.
func replacementsNeverReady(t *testing.T, e *ending) {
	const grace, l = 8 * time.Second, 13 * time.Second
	s := e.plant("unready", "26s", ignoresSigterm, 8)
	s.end()
	requested := e.node(s.nodes[0]).DeletionTimestamp.Time
	terms := e.sigterms(s.pods)
	for i, want := range []time.Duration{0, l, l} {
		after := terms[i].Time.Sub(requested)
		if after < want || after > want+3*time.Second { // requested is in whole seconds
			t.Errorf("pod %d got SIGTERM %v after the request, want %v", i+1, after, want)
		}
		kill := e.AwaitEvent(machines.Event{UID: terms[i].UID, Event: machines.Sigkill})
		if given := harness.Elapsed(terms[i], kill); given < grace-time.Second {
			t.Errorf("pod %d got %v of its grace period of %v", i+1, given, grace)
		}
	}
	counts, cut := s.reports()
	s.show(requested)
	if counts.Evicted != 1 || counts.Deleted+counts.CutShort != 2 {
		t.Errorf("the reports have %+v", counts)
	}
	if len(cut) != 2 {
		t.Errorf("the reports name %+v, want two", cut)
	}
	for _, one := range cut {
		if one.Reason != "BudgetBlocks" || one.Budget != e.Namespace+"/"+s.app || one.Missing > 1 {
			t.Errorf("the report says %+v", one)
		}
	}
}
