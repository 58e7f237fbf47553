package forecast

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// maxDisrupted is the number of evictions under way from which on the API server refuses more.
const maxDisrupted = 2000

// budgets are the PodDisruptionBudgets that decide about the eviction of a pod, and the answer that they give.
type budgets struct {
	all    []*policyv1.PodDisruptionBudget
	answer pod.Answer
	// next: a pod with an earlier L takes the room of the budget.
	next bool
}

// budgetsOf returns the budgets of the pod. The API server asks none about a pod that does not run yet, or no more.
func (w *World) budgetsOf(p *v1.Pod) budgets {
	phase := p.Status.Phase
	if p.DeletionTimestamp != nil || phase == v1.PodPending || phase == v1.PodSucceeded || phase == v1.PodFailed {
		return budgets{}
	}
	var b budgets
	for i := range w.Budgets {
		if selects(&w.Budgets[i], p) {
			b.all = append(b.all, &w.Budgets[i])
		}
	}
	switch {
	case len(b.all) > 1:
		b.answer = pod.Refused
	case len(b.all) == 1 && !allowsUnready(b.all[0], p) && room(b.all[0]) == 0:
		b.answer = pod.Blocked
	}
	return b
}

func selects(budget *policyv1.PodDisruptionBudget, p *v1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && budget.Namespace == p.Namespace && selector.Matches(labels.Set(p.Labels))
}

// allowsUnready reports whether the budget lets the pod go because the pod is not Ready.
func allowsUnready(budget *policyv1.PodDisruptionBudget, p *v1.Pod) bool {
	ready := slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
	policy, status := budget.Spec.UnhealthyPodEvictionPolicy, budget.Status
	return !ready && (policy != nil && *policy == policyv1.AlwaysAllow ||
		status.CurrentHealthy >= status.DesiredHealthy && status.DesiredHealthy > 0)
}

// room returns how many evictions the budget allows now. A status of an older generation allows none.
func room(budget *policyv1.PodDisruptionBudget) int {
	if budget.Status.ObservedGeneration < budget.Generation || len(budget.Status.DisruptedPods) > maxDisrupted {
		return 0
	}
	return max(0, int(budget.Status.DisruptionsAllowed))
}

// numbers says what the budget counts.
func numbers(budget *policyv1.PodDisruptionBudget) string {
	s := budget.Status
	if s.ObservedGeneration < budget.Generation {
		return "its status is older than its spec, and until it is computed anew nothing is allowed"
	}
	return fmt.Sprintf("%d of %d pods healthy, %d needed: %d may go now", s.CurrentHealthy, s.ExpectedPods,
		s.DesiredHealthy, room(budget))
}

func budgetName(budget *policyv1.PodDisruptionBudget) string {
	return "PodDisruptionBudget " + budget.Namespace + "/" + budget.Name
}

func (b budgets) names() []string {
	var names []string
	for _, budget := range b.all {
		names = append(names, budgetName(budget))
	}
	return names
}

// block returns the blocker of the budgets.
func (b budgets) block(reason pod.Reason) Blocker {
	found := Blocker{Reason: string(reason), Object: strings.Join(b.names(), ", ")}
	switch {
	case len(b.all) > 1:
		found.Text = "the API server evicts no pod that several budgets select"
	case b.next:
		found.Text = numbers(b.all[0]) + ", and pods of this node that go first use it up"
	default:
		found.Text = numbers(b.all[0])
	}
	return found
}

// share gives the room of each budget to the pods that may go now, the earliest L first.
func share(found []*outlook) {
	left := map[*policyv1.PodDisruptionBudget]int{}
	sorted := slices.Clone(found)
	slices.SortStableFunc(sorted, func(a, b *outlook) int { return a.forced.Compare(b.forced) })
	for _, o := range sorted {
		if len(o.budgets.all) != 1 || o.budgets.answer != pod.Untried || allowsUnready(o.budgets.all[0], o.pod) ||
			o.state.Gate != pod.Open || o.state.End != pod.Running || o.state.Returns || o.state.Kind == pod.Mirror {
			continue
		}
		budget := o.budgets.all[0]
		if _, seen := left[budget]; !seen {
			left[budget] = room(budget)
		}
		if left[budget]--; left[budget] < 0 {
			o.budgets.next = true
		}
	}
}
