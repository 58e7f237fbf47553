package drain

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

func budgetOf(name string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
}

func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// The selectors of policy/v1, as the API server reads them.
func TestBudgetsOfPod(t *testing.T) {
	m := matcher{}
	m.set(budgetOf("web", selecting("web")))
	m.set(budgetOf("all", &metav1.LabelSelector{}))
	m.set(budgetOf("none", nil))
	m.set(budgetOf("db", selecting("db")))
	m.set(budgetOf("unreadable", &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}))
	labeled := func(namespace, app string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{"app": app}}}
	}
	for _, tc := range []struct {
		pod  *v1.Pod
		want []string
	}{
		{labeled("default", "web"), []string{"default/all", "default/web"}},
		{labeled("default", "other"), []string{"default/all"}},
		{&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}, []string{"default/all"}},
		{labeled("other", "web"), nil},
	} {
		if got := m.of(tc.pod); !slices.Equal(got, tc.want) {
			t.Errorf("budgets of %v in %s: %v, want %v", tc.pod.Labels, tc.pod.Namespace, got, tc.want)
		}
	}
}

func TestGenerationChangesWithSelectorsOnly(t *testing.T) {
	m := matcher{}
	for _, tc := range []struct {
		budget  *policyv1.PodDisruptionBudget
		changes bool
	}{
		{budgetOf("web", nil), true}, {budgetOf("web", nil), false},
		{budgetOf("web", &metav1.LabelSelector{}), true}, {budgetOf("web", &metav1.LabelSelector{}), false},
		{budgetOf("web", selecting("web")), true}, {budgetOf("web", selecting("web")), false}, {budgetOf("web", nil), true},
	} {
		before := m.generation("default")
		if got := m.set(tc.budget); got != tc.changes || (m.generation("default") != before) != tc.changes {
			t.Errorf("%v: changed %v", tc.budget.Spec.Selector, got)
		}
	}
	before := m.generation("default")
	m.remove(budgetOf("web", nil))
	m.remove(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "unknown"}})
	if m.generation("default") == before {
		t.Error("a budget was removed, and the generation is the same")
	}
}

func TestRoomOfBudget(t *testing.T) {
	always := policyv1.AlwaysAllow
	disrupted := map[string]metav1.Time{}
	for i := range maxDisrupted + 1 {
		disrupted[fmt.Sprint(i)] = metav1.Time{}
	}
	for name, tc := range map[string]struct {
		change    func(*policyv1.PodDisruptionBudget)
		allowed   int
		unhealthy bool
	}{
		"room":               {func(*policyv1.PodDisruptionBudget) {}, 2, true},
		"not observed":       {func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }, 0, true},
		"too many disrupted": {func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptedPods = disrupted }, 0, true},
		"too few healthy":    {func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 1 }, 2, false},
		"none desired":       {func(b *policyv1.PodDisruptionBudget) { b.Status.DesiredHealthy = 0 }, 2, false},
		"unhealthy always": {func(b *policyv1.PodDisruptionBudget) {
			b.Status.CurrentHealthy, b.Spec.UnhealthyPodEvictionPolicy = 0, &always
		}, 2, true},
	} {
		b := budgetOf("web", nil)
		b.Generation = 1
		b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 2,
			CurrentHealthy: 3, DesiredHealthy: 3}
		tc.change(b)
		if allowed, unhealthy := roomOf(b); allowed != tc.allowed || unhealthy != tc.unhealthy {
			t.Errorf("%s: %d, %v", name, allowed, unhealthy)
		}
	}
}

func (w *world) setBudget(b *policyv1.PodDisruptionBudget) {
	w.t.Helper()
	budgets := w.client.PolicyV1().PodDisruptionBudgets("default")
	_, err := budgets.Get(w.t.Context(), b.Name, metav1.GetOptions{})
	if err == nil {
		_, err = budgets.Update(w.t.Context(), b, metav1.UpdateOptions{})
	} else {
		_, err = budgets.Create(w.t.Context(), b, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func allowing(name string, allowed int32) *policyv1.PodDisruptionBudget {
	b := budgetOf(name, selecting("web"))
	b.Status.DisruptionsAllowed = allowed
	b.ResourceVersion = fmt.Sprint(allowed + 10)
	return b
}

func TestChangesOfBudgetsReachWaitingPods(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		w.setBudget(allowing("web", 0))
		w.pod("a", 30)
		w.pod("b", 30)
		w.expectRequests()
		if w.expectReason("a", pod.BudgetBlocks); w.left("a").Holder != "default/web" {
			t.Errorf("%+v", w.left("a"))
		}
		w.at(1)
		w.setBudget(allowing("web", 1))
		w.expectRequests("1.0 POST a eviction 30")
		w.at(2)
		other := allowing("web", 0)
		other.Spec.Selector = selecting("other")
		w.setBudget(other)
		w.expectRequests("2.0 POST b eviction 30")
		w.setBudget(budgetOf("late", selecting("late")))
		late := w.pod("late", 30, func(p *v1.Pod) { p.Labels = map[string]string{"app": "late"} })
		w.expectRequests()
		late.Labels = nil
		w.at(3)
		if _, err := w.client.CoreV1().Pods("default").Update(t.Context(), late, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expectRequests("3.0 POST late eviction 30")
		w.pod("last", 30, func(p *v1.Pod) { p.Labels = map[string]string{"app": "late"} })
		w.at(4)
		budgets := w.client.PolicyV1().PodDisruptionBudgets("default")
		if err := budgets.Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.expectRequests("4.0 POST last eviction 30")
	})
}

// 300 nodes of 30 pods, a budget for each 10.
func BenchmarkQueue(b *testing.B) {
	for b.Loop() {
		const pods, budgets = 9000, 900
		q, now := newQueue(evictionSlots), time.Now()
		for i := range budgets {
			q.setBudget(fmt.Sprint(i), 1, false, now)
		}
		for i := range pods {
			q.set(types.UID(fmt.Sprint(i)), now.Add(time.Duration(i%97)*time.Second), of(fmt.Sprint(i%budgets)), now)
		}
		for sent := 0; sent < pods; {
			var flying []*request
			for r := q.take(now); r != nil; r = q.take(now) {
				flying = append(flying, r)
			}
			for _, r := range flying {
				q.answered(r.id, result{}, now)
				q.setBudget(r.guard.budgets[0], 1, false, now)
				q.next()
				sent++
			}
		}
	}
}

// The pod was queued before, and the worker of the node has not come to the change yet.
func TestAnnotationSetInQueueKeepsPod(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		full(w)
		p := w.pod("app", 10).DeepCopy()
		w.pod("other", 10)
		w.at(5)
		w.mu.Lock()
		protected(p)
		if err := (store{w.node}).Update(p); err != nil {
			t.Error(err)
		}
		room := budgetOf("web", &metav1.LabelSelector{})
		room.Status.DisruptionsAllowed = 1
		w.drainer.budgetChanged(room)
		w.mu.Unlock()
		w.expectRequests("5.0 POST other eviction 10") // which takes the room of the budget
		w.expectReason("app", pod.DoNotDisrupt)
	})
}
