package drain

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// maxDisrupted is how many evicted pods may be unconfirmed before the API server refuses all evictions of a budget.
const maxDisrupted = 2000

// matcher finds the budgets of pods. Selectors are parsed once for each change of a budget.
type matcher map[string]*matched

// matched has the budgets of one namespace.
type matched struct {
	// generation increases whenever the budgets of a pod may be others.
	generation int
	selectors  map[string]labels.Selector
	texts      map[string]string
}

// set notes the budget, and reports whether it is new or selects other pods than before. A selector that cannot be
// read selects none, as in the API server.
func (m matcher) set(budget *policyv1.PodDisruptionBudget) bool {
	of := m[budget.Namespace]
	if of == nil {
		of = &matched{selectors: map[string]labels.Selector{}, texts: map[string]string{}}
		m[budget.Namespace] = of
	}
	text := metav1.FormatLabelSelector(budget.Spec.Selector)
	if budget.Spec.Selector == nil {
		text = "" // that of an empty selector is not
	}
	if before, known := of.texts[budget.Name]; known && before == text {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	of.selectors[budget.Name], of.texts[budget.Name] = selector, text
	of.generation++
	return true
}

func (m matcher) remove(budget *policyv1.PodDisruptionBudget) {
	if of := m[budget.Namespace]; of != nil {
		delete(of.selectors, budget.Name)
		delete(of.texts, budget.Name)
		of.generation++
	}
}

// generation returns the generation of the budgets of the namespace.
func (m matcher) generation(namespace string) int {
	if of := m[namespace]; of != nil {
		return of.generation
	}
	return 0
}

// of returns the names of the pod's budgets, sorted, as namespace/name.
func (m matcher) of(p *v1.Pod) []string {
	of := m[p.Namespace]
	if of == nil {
		return nil
	}
	var names []string
	for name, selector := range of.selectors {
		if selector.Matches(labels.Set(p.Labels)) {
			names = append(names, p.Namespace+"/"+name)
		}
	}
	slices.Sort(names)
	return names
}

// roomOf returns how many healthy pods the API server lets go, and whether it lets all others go.
func roomOf(budget *policyv1.PodDisruptionBudget) (allowed int, unhealthy bool) {
	status := &budget.Status
	policy := budget.Spec.UnhealthyPodEvictionPolicy
	unhealthy = policy != nil && *policy == policyv1.AlwaysAllow ||
		status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0
	if status.ObservedGeneration < budget.Generation || len(status.DisruptedPods) > maxDisrupted {
		return 0, unhealthy
	}
	return int(status.DisruptionsAllowed), unhealthy
}

// guardOf returns what refuses the eviction of the pod. The API server evicts a Pending pod whatever its budgets say.
func (d *Drainer) guardOf(r *tracked) guard {
	if r.pod.Status.Phase == v1.PodPending {
		return guard{}
	}
	if generation := d.matcher.generation(r.pod.Namespace); r.matched != generation {
		r.matched, r.budgets = generation, d.matcher.of(r.pod)
	}
	return guard{budgets: r.budgets, healthy: isReady(r.pod)}
}

func isReady(p *v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// budgetsTimeout is how long a drainer waits for the budgets. Without them it would try pods that are blocked.
const budgetsTimeout = 5 * time.Second

// watchBudgets follows the budgets, and returns a function that ends that.
func (d *Drainer) watchBudgets() func() {
	informer := d.config.Budgets
	if informer == nil {
		return func() {}
	}
	handler := controller.OnChange(
		func(_, now *policyv1.PodDisruptionBudget) { d.budgetChanged(now) },
		d.budgetGone)
	registration, err := informer.AddEventHandler(handler)
	if err != nil { // only of an informer that has stopped
		return func() {}
	}
	ctx, cancel := context.WithTimeout(d.ctx, budgetsTimeout)
	defer cancel()
	d.budgetsKnown = registration.HasSynced
	cache.WaitFor(ctx, "", registration.HasSyncedChecker())
	return func() { _ = informer.RemoveEventHandler(registration) }
}

func (d *Drainer) budgetChanged(budget *policyv1.PodDisruptionBudget) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := cache.MetaObjectToName(budget).String()
	allowed, unhealthy := roomOf(budget)
	d.queue.setBudget(name, allowed, unhealthy, d.clock.Now())
	regrouped := d.matcher.set(budget)
	if regrouped {
		d.regroup(budget.Namespace)
	}
	d.notifyLooking(name, regrouped)
	d.send()
}

func (d *Drainer) budgetGone(budget *policyv1.PodDisruptionBudget) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := cache.MetaObjectToName(budget).String()
	d.queue.dropBudget(name)
	d.matcher.remove(budget)
	d.regroup(budget.Namespace)
	d.notifyLooking(name, false)
	d.send()
}

// regroup finds the budgets of waiting pods again.
func (d *Drainer) regroup(namespace string) {
	for id, request := range d.queue.waiting {
		if r := d.records[id]; r != nil && r.pod.Namespace == namespace {
			d.queue.set(id, request.forced, d.guardOf(r), d.clock.Now())
		}
	}
}
