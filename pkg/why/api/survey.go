package api

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// parallel is how many lists are read at the same time.
const parallel = 8

// item is an object of which the metadata was listed.
type item struct {
	*metav1.PartialObjectMetadata
	resource cluster.Resource
}

// ref returns how to read the whole object.
func (i item) ref() cluster.Ref {
	return cluster.Ref{Resource: i.resource.GroupVersionResource, Kind: i.resource.Kind, Namespace: i.Namespace,
		Name: i.Name}
}

// survey is the metadata of all objects in a namespace, or in the cluster.
type survey struct {
	items []item
	// missed are the kinds that could not be listed.
	missed []cluster.Resource
	// undiscovered: the API server did not name all kinds that it serves.
	undiscovered bool
}

// isComplete reports whether all kinds were listed.
func (s survey) isComplete() bool { return len(s.missed) == 0 && !s.undiscovered }

// takeSurvey lists the metadata of all kinds that pick returns true for, in the namespace or
// in the cluster, once for the name of pick. The lists take at most two thirds of the time that
// is left, so that whatever they find can still be explained.
func takeSurvey(ctx context.Context, e chain.Explorer, namespace, name string, pick func(cluster.Resource) bool) survey {
	if deadline, limited := ctx.Deadline(); limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)*2/3)
		defer cancel()
	}
	return cluster.Remember(e.Reader(), fmt.Sprintf("survey %q of %s", namespace, name), func(r *cluster.Reader) survey {
		return readSurvey(ctx, r, namespace, pick)
	})
}

func readSurvey(ctx context.Context, reader *cluster.Reader, namespace string, pick func(cluster.Resource) bool) survey {
	all, complete := reader.Resources()
	resources := slices.DeleteFunc(slices.Clone(all), func(r cluster.Resource) bool { return isSecondName(r) || !pick(r) })
	lists := make([][]metav1.PartialObjectMetadata, len(resources))
	seen := make([]bool, len(resources))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, resource := range resources {
		group.Go(func() error {
			lists[i], seen[i] = reader.Metadata(ctx, resource.GroupVersionResource, namespace)
			return nil
		})
	}
	_ = group.Wait()
	return collect(resources, lists, seen, !complete)
}

// surveyOf returns the survey of what the owner may own: an owner in a namespace owns nothing elsewhere.
func surveyOf(ctx context.Context, e chain.Explorer, owner *unstructured.Unstructured) survey {
	return takeSurvey(ctx, e, owner.GetNamespace(), "dependents",
		func(r cluster.Resource) bool { return isCollected(r) && (r.Namespaced || owner.GetNamespace() == "") })
}

// isCollected reports whether the garbage collector deletes objects of the kind that can be listed, and waits for them.
func isCollected(r cluster.Resource) bool {
	isEvents := r.Resource == "events" && (r.Group == "" || isSecondName(r))
	return !isEvents && slices.Contains(r.Verbs, "delete") && slices.Contains(r.Verbs, "watch")
}

// collect returns the survey of the lists, each object once: a kind that two groups serve
// is listed twice.
func collect(resources []cluster.Resource, lists [][]metav1.PartialObjectMetadata, seen []bool,
	undiscovered bool) survey {
	s := survey{undiscovered: undiscovered}
	known := map[types.UID]bool{}
	for i, resource := range resources {
		if !seen[i] {
			s.missed = append(s.missed, resource)
		}
		for j := range lists[i] {
			object := &lists[i][j]
			if !known[object.UID] {
				known[object.UID] = true
				s.items = append(s.items, item{object, resource})
			}
		}
	}
	return s
}

// isSecondName reports whether the kind is served by another group, too.
func isSecondName(r cluster.Resource) bool {
	return r.Group == "events.k8s.io" && r.Resource == "events"
}

// missedNames returns the names of the kinds that could not be listed.
func (s survey) missedNames() []string {
	var names []string
	for _, resource := range s.missed {
		names = append(names, resource.GroupResource().String())
	}
	if s.undiscovered {
		names = append(names, "kinds of API groups that did not answer")
	}
	return names
}
