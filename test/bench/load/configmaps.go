package load

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// configMapResource is the resource of owners and dependents.
const configMapResource = "configmaps"

// objects are the ConfigMaps in the namespace of a turn, as a watch of their metadata reports
// them. There are none at first.
type objects struct {
	watched
	present map[string]struct{}
}

// openObjects watches the ConfigMaps until ctx ends, and connects the deleter of the ceiling.
func (s *session) openObjects(ctx context.Context, cluster *Cluster, config *rest.Config) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect watch: %w", err)
	}
	configMaps := client.Resource(v1.SchemeGroupVersion.WithResource(configMapResource)).Namespace(s.namespace)
	list, err := configMaps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	o := &objects{watched: newWatched(map[string]string{configMapResource: list.ResourceVersion}),
		present: map[string]struct{}{}}
	first, err := configMaps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return fmt.Errorf("watch ConfigMaps: %w", err)
	}
	go o.follow(ctx, first, configMapResource, configMaps.Watch, o.note)
	s.objects = o
	if s.turn.Side == plan.Ceiling {
		s.deleter, err = newDeleter(ctx, cluster, s)
	}
	return err
}

// note takes in one event.
func (o *objects) note(resource string, kind watch.EventType, object runtime.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.advance(resource, object)
	found, err := meta.Accessor(object)
	switch {
	case err != nil:
	case kind == watch.Deleted:
		delete(o.present, found.GetName())
	default:
		o.present[found.GetName()] = struct{}{}
	}
}

// await waits until done is true of the names of the ConfigMaps that exist.
func (o *objects) await(ctx context.Context, what string, done func(present map[string]struct{}) bool) error {
	return o.watched.await(ctx, what, func() bool { return done(o.present) }, func() string {
		return fmt.Sprintf("there are %d ConfigMaps", len(o.present))
	})
}

// awaitPresent waits until that many ConfigMaps exist.
func (o *objects) awaitPresent(ctx context.Context, count int) error {
	return o.await(ctx, fmt.Sprintf("%d ConfigMaps exist", count),
		func(present map[string]struct{}) bool { return len(present) == count })
}

// awaitGone waits until the ConfigMap is gone.
func (o *objects) awaitGone(ctx context.Context, name string) error {
	return o.await(ctx, name+" is gone", func(present map[string]struct{}) bool {
		_, exists := present[name]
		return !exists
	})
}

// dependentName returns a name of 40 characters.
func dependentName(i int) string { return fmt.Sprintf("dependent-%030d", i) }

// createConfigMap creates a ConfigMap as a user does.
func (s *session) createConfigMap(ctx context.Context, name string,
	owners ...metav1.OwnerReference) (*v1.ConfigMap, error) {
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners},
		Data: map[string]string{"key": "value"}}
	created, err := s.client.CoreV1().ConfigMaps(s.namespace).Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create ConfigMap: %w", err)
	}
	return created, nil
}

// referenceTo returns a reference that blocks the deletion of the owner.
func referenceTo(owner *v1.ConfigMap) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID,
		BlockOwnerDeletion: ptr.To(true)}
}

// deleteConfigMap deletes a ConfigMap as a user does.
func (s *session) deleteConfigMap(ctx context.Context, name string) error {
	policy := metav1.DeletePropagationBackground
	if s.turn.Scenario.Policy == plan.Foreground {
		policy = metav1.DeletePropagationForeground
	}
	if err := s.client.CoreV1().ConfigMaps(s.namespace).Delete(ctx, name,
		metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		return fmt.Errorf("delete ConfigMap: %w", err)
	}
	return nil
}

// wipeObjects removes what is left of the turn once no program runs any more.
func (s *session) wipeObjects(ctx context.Context) error {
	configMaps := s.client.CoreV1().ConfigMaps(s.namespace)
	list, err := configMaps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list what is left: %w", err)
	}
	for _, object := range list.Items {
		if len(object.Finalizers) == 0 {
			continue
		}
		if err := orGone(patchOut(ctx, configMaps, &object)); err != nil {
			return err
		}
	}
	if err := configMaps.DeleteCollection(ctx,
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)},
		metav1.ListOptions{}); err != nil {
		return fmt.Errorf("remove what is left: %w", err)
	}
	return s.objects.awaitPresent(ctx, 0)
}
