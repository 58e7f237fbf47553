package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// StaysLabel is on objects that are the same for all tests of a lent cluster.
const StaysLabel = "e2e.exeunt.io/stays"

// automanaged is on the APIServices that the API server creates and deletes by itself.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// inventory has the objects of a cluster by kind and UID.
type inventory map[schema.GroupVersionResource]map[types.UID]metav1.PartialObjectMetadata

// errTouched is the error of a cluster where a test changed what was there before.
var errTouched = errors.New("an object that is not of the test was changed or deleted")

// takeInventory lists the objects of all kinds that can be deleted.
func takeInventory(ctx context.Context, config *rest.Config) (inventory, error) {
	config.WarningHandler = rest.NoWarnings{}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	// Kinds of a group that does not answer are left out, and the error is returned in the end.
	lists, incomplete := kinds.ServerPreferredResources()
	served, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list",
		"delete"}}, lists))
	if err != nil {
		return nil, fmt.Errorf("read kinds: %w", err)
	}
	found := inventory{}
	for resource := range served {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			incomplete = errors.Join(incomplete, fmt.Errorf("list %s: %w", resource.Resource, err))
			continue
		}
		found[resource] = map[types.UID]metav1.PartialObjectMetadata{}
		for _, object := range list.Items {
			if object.Labels[StaysLabel] == "" {
				found[resource][object.UID] = object
			}
		}
	}
	return found, incomplete
}

// errNotCleaned is the error of a cluster in which objects or kinds of a test stay.
var errNotCleaned = errors.New("objects or kinds of the test do not go")

// patience is the number of inventories without progress after which cleaning gives up. A time
// would be too short on a busy machine.
const patience = 20

// clean deletes what the inventory does not have, and returns once the cluster has the
// objects and the kinds of the inventory.
func (c *lentCluster) clean(ctx context.Context) error {
	fewest, waited := math.MaxInt, 0
	var last error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		now, err := takeInventory(ctx, c.Plane.RESTConfig())
		objects, removal := c.removeNew(ctx, now)
		left := objects + len(now) // the API server may still serve kinds of the test
		last = errors.Join(err, removal)
		switch {
		case last == nil && left == len(c.untouched):
			return true, c.untouched.compare(now)
		case left < fewest:
			fewest, waited = left, 0
		case waited == patience:
			return false, errNotCleaned
		default:
			waited++
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errNotCleaned) {
		return errors.Join(err, last)
	}
	return err
}

// removeNew deletes the objects that the untouched cluster does not have, and returns how many
// there are and which. Namespaces are last: no finalizer can be removed in one that is gone.
func (c *lentCluster) removeNew(ctx context.Context, now inventory) (left int, err error) {
	namespaces := v1.SchemeGroupVersion.WithResource("namespaces")
	kinds := slices.DeleteFunc(slices.Collect(maps.Keys(now)),
		func(kind schema.GroupVersionResource) bool { return kind == namespaces })
	for _, kind := range append(kinds, namespaces) {
		if kind == namespaces && left > 0 {
			return left, err
		}
		for uid, object := range now[kind] {
			if _, old := c.untouched[kind][uid]; !old {
				left++
				err = errors.Join(err, fmt.Errorf("%s %s/%s is left", kind.Resource, object.Namespace, object.Name),
					c.remove(ctx, kind, object))
			}
		}
	}
	return left, err
}

// remove deletes an object of a test, whatever its finalizers wait for.
func (c *lentCluster) remove(ctx context.Context, resource schema.GroupVersionResource,
	object metav1.PartialObjectMetadata) error {
	if object.Labels[automanaged] != "" {
		return nil
	}
	client, err := metadata.NewForConfig(c.Plane.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	objects := client.Resource(resource).Namespace(object.Namespace)
	err = objects.Delete(ctx, object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), PropagationPolicy: new(metav1.DeletePropagationBackground),
		Preconditions: &metav1.Preconditions{UID: &object.UID},
	})
	if resource.Resource == "namespaces" && err == nil {
		_, err = c.Client.CoreV1().Namespaces().Finalize(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.Name}},
			metav1.UpdateOptions{})
	}
	// The API server itself removes the finalizer of a definition, once its objects are gone.
	if len(object.Finalizers) > 0 && resource.Resource != "customresourcedefinitions" && err == nil {
		_, err = objects.Patch(ctx, object.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// compare returns an error if an object of the inventory was changed or deleted.
func (i inventory) compare(now inventory) error {
	// The API server writes these by itself.
	live := []string{"leases", "apiservices", "customresourcedefinitions", "flowschemas", "prioritylevelconfigurations",
		"servicecidrs"}
	for resource, objects := range i {
		for uid, before := range objects {
			after, found := now[resource][uid]
			if !found || before.Generation != after.Generation ||
				before.ResourceVersion != after.ResourceVersion && !slices.Contains(live, resource.Resource) {
				return fmt.Errorf("%s %s/%s: %w", resource.Resource, before.Namespace, before.Name, errTouched)
			}
		}
	}
	return nil
}
