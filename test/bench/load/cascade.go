package load

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/bench/plan"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Collect is the phase from the deletion of owners until they and all dependents are gone.
const Collect = "collect"

// rootName is the name of the owner of a cascade.
const rootName = "owner"

// tree are an owner and its dependents, as created.
type tree struct {
	root          *v1.ConfigMap
	inner, leaves []*v1.ConfigMap
}

// cascade deletes an owner, after the programs have started among its dependents.
func cascade(ctx context.Context, s *session) error {
	t, err := s.createTree(ctx)
	if err != nil {
		return err
	}
	if err := s.beginCollecting(ctx); err != nil {
		return err
	}
	if rest := s.turn.Scenario.Rest; rest > 0 {
		sandbox.Pause(ctx, rest)
		if s.rest, err = s.programs.Memory(); err != nil {
			return err
		}
	}
	phase, err := s.measure(ctx, Collect, s.turn.Scenario.Size, func(ctx context.Context) error {
		if err := s.deleteConfigMap(ctx, rootName); err != nil {
			return err
		}
		if s.deleter != nil {
			if err := s.deleter.collect(ctx, t); err != nil {
				return err
			}
		}
		return s.objects.awaitPresent(ctx, 0)
	})
	if err != nil {
		return err
	}
	phase.Unit = s.turn.Scenario.Unit()
	return nil
}

// createTree creates the owner and its dependents. Every inner node has as many of the leaves.
func (s *session) createTree(ctx context.Context) (tree, error) {
	inner, size := s.turn.Scenario.Inner, s.turn.Scenario.Size
	t := tree{inner: make([]*v1.ConfigMap, inner), leaves: make([]*v1.ConfigMap, size-inner)}
	var err error
	if t.root, err = s.createConfigMap(ctx, rootName); err != nil {
		return t, err
	}
	create := func(objects []*v1.ConfigMap, first int, owner func(i int) *v1.ConfigMap) error {
		return inParallel(ctx, len(objects), func(ctx context.Context, i int) (err error) {
			objects[i], err = s.createConfigMap(ctx, dependentName(first+i), referenceTo(owner(i)))
			return err
		})
	}
	if err := create(t.inner, 0, func(int) *v1.ConfigMap { return t.root }); err != nil {
		return t, err
	}
	err = create(t.leaves, inner, func(i int) *v1.ConfigMap {
		if inner == 0 {
			return t.root
		}
		return t.inner[i%inner]
	})
	if err != nil {
		return t, err
	}
	return t, s.objects.awaitPresent(ctx, size+1)
}

// beginCollecting starts the programs, and waits until they collect.
func (s *session) beginCollecting(ctx context.Context) error {
	if err := s.programs.Start(ctx); err != nil {
		return err
	}
	const name = "garbage"
	absent := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "absent",
		UID: "00000000-0000-0000-0000-000000000000"}
	created, err := s.createConfigMap(ctx, name, absent)
	if err != nil {
		return err
	}
	if s.deleter != nil {
		if err := s.deleter.delete(ctx, created, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	if err := s.objects.awaitGone(ctx, name); err != nil {
		return err
	}
	_, err = s.awaitQuiet(ctx)
	return err
}

// release deletes owners with one dependent in the foreground, one after the other.
func release(ctx context.Context, s *session) error {
	if err := s.createQuiet(ctx); err != nil {
		return err
	}
	if err := s.beginCollecting(ctx); err != nil {
		return err
	}
	err := s.oneByOne(ctx, Collect, func(ctx context.Context, i int) (time.Duration, error) {
		name := fmt.Sprintf("owner-%d", i)
		owner, err := s.createConfigMap(ctx, name)
		if err != nil {
			return 0, err
		}
		dependent, err := s.createConfigMap(ctx, dependentName(i), referenceTo(owner))
		if err != nil {
			return 0, err
		}
		sandbox.Pause(ctx, between)
		start := time.Now()
		if err := s.deleteConfigMap(ctx, name); err != nil {
			return 0, err
		}
		if s.deleter != nil {
			if err := s.deleter.collect(ctx, tree{root: owner, leaves: []*v1.ConfigMap{dependent}}); err != nil {
				return 0, err
			}
		}
		err = s.objects.awaitGone(ctx, name)
		return time.Since(start), err
	})
	if err != nil {
		return err
	}
	s.phases[len(s.phases)-1].Unit = s.turn.Scenario.Unit()
	return nil
}

// policyOf returns the policy with which a collector deletes an inner node.
func policyOf(s plan.Scenario) metav1.DeletionPropagation {
	if s.Policy == plan.Foreground {
		return metav1.DeletePropagationForeground
	}
	return metav1.DeletePropagationBackground
}
