package machines

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// bindings is the number of pods that are bound at a time.
const bindings = 32

// scheduler binds pending pods to nodes: those with the fewest pods of the same owner, then with the fewest pods.
type scheduler struct {
	cloud *Cloud
	woken chan struct{}
	// bound are the nodes of pods that the watch still shows as pending. Only run uses it.
	bound map[types.UID]string
}

func newScheduler(c *Cloud) *scheduler {
	return &scheduler{cloud: c, woken: make(chan struct{}, 1), bound: map[types.UID]string{}}
}

// wake makes the scheduler look at all pending pods.
func (s *scheduler) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

func (s *scheduler) run(ctx context.Context) {
	for {
		select {
		case <-s.woken:
			s.bindAll(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// room is a node with the number of its pods, in all and by owner.
type room struct {
	node   *v1.Node
	pods   int
	owners map[types.UID]int
}

func (r *room) add(object *v1.Pod) {
	r.pods++
	r.owners[ownerOf(object)]++
}

func ownerOf(object *v1.Pod) types.UID {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.UID
	}
	return object.UID
}

// bindAll binds all pending pods that fit a node.
func (s *scheduler) bindAll(ctx context.Context) {
	shown := map[types.UID]string{}
	var pending []*v1.Pod
	for _, object := range s.cloud.podsOf("") {
		if node := s.bound[object.UID]; node != "" {
			shown[object.UID] = node
		} else if object.DeletionTimestamp == nil && len(object.Spec.SchedulingGates) == 0 {
			pending = append(pending, object)
		}
	}
	s.bound = shown
	if len(pending) == 0 {
		return
	}
	rooms := s.rooms()
	var group sync.WaitGroup
	slots := make(chan struct{}, bindings)
	var failed sync.Map
	for _, object := range pending {
		chosen := choose(rooms, object)
		if chosen == nil {
			continue
		}
		chosen.add(object)
		s.bound[object.UID] = chosen.node.Name
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := s.bind(ctx, object, chosen.node.Name); err != nil {
				failed.Store(object.UID, err)
			}
		})
	}
	group.Wait()
	failed.Range(func(uid, err any) bool {
		delete(s.bound, uid.(types.UID))
		s.cloud.warn(err.(error))
		s.cloud.after(longestRetry, s.wake)
		return true
	})
}

// bind binds a pod. A pod that is gone, or is bound by another scheduler, is no error.
func (s *scheduler) bind(ctx context.Context, object *v1.Pod, node string) error {
	err := s.cloud.client.CoreV1().Pods(object.Namespace).Bind(ctx, &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name, UID: object.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("bind pod %s/%s to %s: %w", object.Namespace, object.Name, node, err)
}

// rooms returns all nodes, in the order of their names.
func (s *scheduler) rooms() []*room {
	var rooms []*room
	for _, object := range s.cloud.views.nodes.GetStore().List() {
		node := object.(*v1.Node)
		r := &room{node: node, owners: map[types.UID]int{}}
		for _, pod := range s.cloud.podsOf(node.Name) {
			r.add(pod)
		}
		rooms = append(rooms, r)
	}
	for _, pod := range s.cloud.podsOf("") {
		for _, r := range rooms {
			if r.node.Name == s.bound[pod.UID] {
				r.add(pod)
			}
		}
	}
	slices.SortFunc(rooms, func(a, b *room) int { return strings.Compare(a.node.Name, b.node.Name) })
	return rooms
}

// choose returns the best node for the pod, or nil.
func choose(rooms []*room, object *v1.Pod) (best *room) {
	owner := ownerOf(object)
	for _, r := range rooms {
		better := best == nil || cmp.Or(cmp.Compare(r.owners[owner], best.owners[owner]), cmp.Compare(r.pods, best.pods)) < 0
		if better && fits(r.node, &object.Spec) {
			best = r
		}
	}
	return best
}

// fits reports whether the pod may be bound to the node.
func fits(node *v1.Node, spec *v1.PodSpec) bool {
	if node.Spec.Unschedulable && !toleratesAll([]v1.Taint{{Key: v1.TaintNodeUnschedulable,
		Effect: v1.TaintEffectNoSchedule}}, spec.Tolerations) {
		return false
	}
	return toleratesAll(node.Spec.Taints, spec.Tolerations) &&
		labels.SelectorFromSet(spec.NodeSelector).Matches(labels.Set(node.Labels)) && hasAffinity(node, spec.Affinity)
}

// toleratesAll reports whether the taints keep no pod with the tolerations away.
func toleratesAll(taints []v1.Taint, tolerations []v1.Toleration) bool {
	return !slices.ContainsFunc(taints, func(taint v1.Taint) bool {
		return taint.Effect != v1.TaintEffectPreferNoSchedule &&
			!slices.ContainsFunc(tolerations, func(t v1.Toleration) bool {
				return t.ToleratesTaint(klog.Background(), &taint, false)
			})
	})
}

// hasAffinity reports whether the required node affinity selects the node.
func hasAffinity(node *v1.Node, affinity *v1.Affinity) bool {
	if affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return true
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term v1.NodeSelectorTerm) bool {
		return len(term.MatchExpressions)+len(term.MatchFields) > 0 &&
			matchesAll(term.MatchExpressions, node.Labels) &&
			matchesAll(term.MatchFields, labels.Set{metav1.ObjectNameField: node.Name})
	})
}

// operators are those of node selectors, as label selectors name them.
var operators = map[v1.NodeSelectorOperator]selection.Operator{
	v1.NodeSelectorOpIn: selection.In, v1.NodeSelectorOpNotIn: selection.NotIn,
	v1.NodeSelectorOpExists: selection.Exists, v1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	v1.NodeSelectorOpGt: selection.GreaterThan, v1.NodeSelectorOpLt: selection.LessThan,
}

func matchesAll(expressions []v1.NodeSelectorRequirement, set labels.Set) bool {
	for _, e := range expressions {
		requirement, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
		if err != nil || !requirement.Matches(set) {
			return false
		}
	}
	return true
}
