package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// covered are the groups of custom kinds that a teardown deletes, or that stand for nothing outside.
var covered = []string{alive.Group, snapshotGroup, gatewayGroup, "groupsnapshot.storage.k8s.io"}

const nodePools = "nodepools.karpenter.sh"

// addUncovered adds what a teardown does not delete: custom resources whose controllers may have made something outside,
// NodePools, and names of external-dns.
func (s *survey) addUncovered(ctx context.Context) {
	custom := s.customKinds(ctx)
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(8)
	found := map[string]teardown.Problem{}
	for _, resource := range custom {
		group.Go(func() error {
			if problem, is := s.uncovered(ctx, resource); is {
				mu.Lock()
				defer mu.Unlock()
				found[resource.GroupResource().String()] = problem
			}
			return nil
		})
	}
	_ = group.Wait()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		s.problem(found[name])
	}
	if s.names > 0 {
		s.problem(teardown.Problem{Reason: "NotCovered", Text: fmt.Sprintf("not covered: the names that external-dns wrote for %s. "+
			"With its flag --policy=upsert-only they stay; else it deletes them when the objects go",
			terminal.Count(s.names, "Service or Ingress")),
			Next: s.Commands.Kubectl("", "get", "services,ingresses", "--all-namespaces", "-o", "yaml") +
				" | grep external-dns.alpha.kubernetes.io/hostname"})
	}
}

// customKinds returns the kinds of the CustomResourceDefinitions.
func (s *survey) customKinds(ctx context.Context) []cluster.Resource {
	definitions := map[string]bool{}
	served, _ := s.Reader.ServedIn("apiextensions.k8s.io")
	for _, resource := range served {
		s.Reader.EachMetadata(ctx, resource.GroupVersionResource, "", func(page []metav1.PartialObjectMetadata) {
			for i := range page {
				definitions[page[i].Name] = true
			}
		})
	}
	all, _ := s.Reader.Resources()
	return slices.DeleteFunc(all, func(r cluster.Resource) bool {
		name := r.GroupResource().String()
		return !definitions[name] || slices.Contains(covered, r.Group) || serving[name] != ""
	})
}

// uncovered returns a problem if objects of the kind have finalizers of a controller, or make machines.
func (s *survey) uncovered(ctx context.Context, resource cluster.Resource) (teardown.Problem, bool) {
	count, objects, finalizers := 0, 0, map[string]bool{}
	s.Reader.EachMetadata(ctx, resource.GroupVersionResource, "", func(page []metav1.PartialObjectMetadata) {
		for i := range page {
			objects++
			held := false
			for _, name := range page[i].Finalizers {
				if name != metav1.FinalizerDeleteDependents && name != metav1.FinalizerOrphanDependents {
					held, finalizers[name] = true, true
				}
			}
			if held {
				count++
			}
		}
	})
	name := resource.GroupResource().String()
	words := []string{"delete", name, "--all"}
	if resource.Namespaced {
		words = append(words, "--all-namespaces")
	}
	switch {
	case name == nodePools && objects > 0:
		return teardown.Problem{Reason: "NotCovered", Text: fmt.Sprintf("not covered: %s make and delete machines. Delete them "+
			"after the teardown: programs that delete disks run on their nodes", terminal.Count(objects, "NodePool")),
			Next: s.Commands.Kubectl("", words...)}, true
	case count == 0:
		return teardown.Problem{}, false
	}
	return teardown.Problem{Reason: "NotCovered", Text: fmt.Sprintf("not covered: %d %s with finalizers of %s. What they made outside "+
		"stays unless they are deleted before, while their controller runs", count, name,
		holdersOf(finalizers, resource)), Next: s.Commands.Kubectl("", words...)}, true
}

// holdersOf names who removes the finalizers.
func holdersOf(finalizers map[string]bool, resource cluster.Resource) string {
	var names []string
	for _, finalizer := range slices.Sorted(maps.Keys(finalizers)) {
		name := finalizer
		if family, known := families.Find(finalizer, resource.Kind, resource.Group); known {
			name = family.Name
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names[:min(examples, len(names))], ", ")
}
