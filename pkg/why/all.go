package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/api"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

const (
	// parallel is the number of requests, and of explanations, at a time.
	parallel = 8
	// maxExplained bounds the time and the memory of All: an explanation takes some 20 requests.
	maxExplained = 1000
)

// Scope selects the objects of a survey.
type Scope struct {
	// Namespace is "" for all namespaces and objects without a namespace.
	Namespace string
	// OlderThan leaves out objects that have waited less, by the API server's clock.
	OlderThan time.Duration
}

// candidate is an object that waits.
type candidate struct {
	ref   cluster.Ref
	uid   types.UID
	since time.Time
	// deadline is nil for a deletion without a grace period.
	deadline *blocker.Deadline
	likeness
}

type waitingItem struct {
	report blocker.Report
	since  time.Time
}

// finding collects candidates.
type finding struct {
	scope Scope
	now   time.Time

	mu    sync.Mutex
	known map[types.UID]bool
	found []candidate
	// younger are those that have waited for less than the scope wants.
	younger map[types.UID]bool
}

// All explains all that waits: objects of all kinds that are being deleted, and volumes that
// are Released or Failed with the reclaim policy Delete. Of more than a thousand objects a
// sample of each kind, driver, phase and finalizers is explained; the others have its root blocker, and are unknown. The error says why
// nothing could be listed.
func (e *Explorer) All(ctx context.Context, scope Scope) (Survey, error) {
	resources, _ := e.reader.Resources()
	if len(resources) == 0 {
		_, err := e.reader.Discovery().ServerGroups()
		return Survey{}, fmt.Errorf("list kinds: %w", cmp.Or(err, errNoKinds))
	}
	f := &finding{scope: scope, now: e.reader.Now(), known: map[types.UID]bool{}, younger: map[types.UID]bool{}}
	var work errgroup.Group
	work.SetLimit(parallel)
	for _, resource := range resources {
		if scope.covers(resource) {
			work.Go(func() error {
				f.list(ctx, e.reader, resource)
				return nil
			})
		}
	}
	_ = work.Wait() // list notes its failures with the reader
	items := e.explainAll(ctx, f.found)
	return Survey{
		Items: grouped(items), Younger: len(f.younger), OlderThan: scope.OlderThan, Incomplete: e.reader.Incomplete(),
	}, nil
}

var errNoKinds = errors.New("the API server serves none")

// isEvent reports whether the kind is that of Kubernetes. Others may have the same name.
func isEvent(resource cluster.Resource) bool {
	return resource.Kind == "Event" && (resource.Group == "" || resource.Group == "events.k8s.io")
}

// covers reports whether objects of the kind can be in the scope, and can be deleted. Events
// are left out: they expire, and there are too many.
func (s Scope) covers(resource cluster.Resource) bool {
	switch {
	case isEvent(resource) || !slices.Contains(resource.Verbs, "delete"):
		return false
	case resource.Kind == "PersistentVolume": // those of claims in the namespace
		return true
	default:
		return resource.Namespaced || s.Namespace == ""
	}
}

// list adds the objects of one kind that wait.
func (f *finding) list(ctx context.Context, reader *cluster.Reader, resource cluster.Resource) {
	if resource.Kind == "PersistentVolume" && resource.Group == "" {
		volumes, _ := cluster.Volumes(ctx, reader) // which notes what it could not list
		for i := range volumes {
			f.addVolume(resource, &volumes[i])
		}
		return
	}
	namespace := ""
	if resource.Namespaced {
		namespace = f.scope.Namespace
	}
	reader.EachMetadata(ctx, resource.GroupVersionResource, namespace, func(page []metav1.PartialObjectMetadata) {
		for i := range page {
			f.addDeleted(resource, &page[i])
		}
	})
}

// addDeleted adds an object that is being deleted. It waits since the request: the deletion timestamp of a pod or
// custom resource in its grace period is ahead.
func (f *finding) addDeleted(resource cluster.Resource, object *metav1.PartialObjectMetadata) {
	if deletion := deadline.Of(object); deletion.Kind() != deadline.NotDeleted {
		f.add(resource, object.ObjectMeta, deletion.Requested(), "", "")
	}
}

// addVolume adds a volume that is being deleted, or is to be deleted by its policy.
func (f *finding) addVolume(resource cluster.Resource, volume *corev1.PersistentVolume) {
	claim := volume.Spec.ClaimRef
	if f.scope.Namespace != "" && (claim == nil || claim.Namespace != f.scope.Namespace) {
		return
	}
	driver, phase := driverOf(volume), string(volume.Status.Phase)
	released := volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed
	switch {
	case volume.DeletionTimestamp != nil:
		f.add(resource, volume.ObjectMeta, volume.DeletionTimestamp.Time, driver, phase)
	case !released || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
	case volume.Status.LastPhaseTransitionTime != nil:
		f.add(resource, volume.ObjectMeta, volume.Status.LastPhaseTransitionTime.Time, driver, phase)
	default:
		f.add(resource, volume.ObjectMeta, volume.CreationTimestamp.Time, driver, phase)
	}
}

// add adds an object unless it waits for too short a time, or is known by another group.
func (f *finding) add(resource cluster.Resource, object metav1.ObjectMeta, since time.Time, driver, phase string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since.Add(f.scope.OlderThan).After(f.now) {
		f.younger[object.UID] = true
		return
	}
	if f.known[object.UID] {
		return
	}
	f.known[object.UID] = true
	f.found = append(f.found, candidate{
		ref: cluster.Ref{Resource: resource.GroupVersionResource, Kind: resource.Kind, Namespace: object.Namespace,
			Name: object.Name},
		uid: object.UID, since: since, deadline: blocker.DeadlineOf(&object, api.IsDefinedGroup(resource.Group)),
		likeness: likeness{resource.GroupResource().String(), driver, phase, strings.Join(object.Finalizers, " ")},
	})
}
