package differential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// resources has the API resource of each kind in scenarios.
var resources = map[string]schema.GroupVersionResource{
	"claim":           {Version: "v1", Resource: "persistentvolumeclaims"},
	"volume":          {Version: "v1", Resource: "persistentvolumes"},
	"pod":             {Version: "v1", Resource: "pods"},
	"recycler":        {Version: "v1", Resource: "pods"},
	"node":            {Version: "v1", Resource: "nodes"},
	"class":           {Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
	"attributesclass": {Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses"},
}

// watched has the recorded kinds.
var watched = []string{"claim", "volume", "pod"}

// eventSource is the component in events of the loops, on both sides.
const eventSource = "persistentvolume-controller"

// ofProvisioner is a suffix for events of another component.
const ofProvisioner = " of the provisioner"

var eventResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// life has the versions of one object that a watch has reported.
type life struct {
	kind   string
	number int      // 1 for the first object of the name
	phases []string // without repetitions
	object *unstructured.Unstructured
	gone   bool
	events map[string][]string // messages, by type and reason
}

// objectKey is kind, namespace and name of an object.
type objectKey struct{ kind, namespace, name string }

// recorder records the objects and events of a cluster. Callers do not change the results.
type recorder struct {
	mu      sync.Mutex
	lives   map[types.UID]*life
	latest  map[objectKey]types.UID // of the latest object
	early   map[types.UID]map[string][]string
	changed chan struct{} // closed on every change
	stop    context.CancelFunc
}

func startRecorder(ctx context.Context, client dynamic.Interface) (*recorder, error) {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &recorder{
		lives:   map[types.UID]*life{},
		latest:  map[objectKey]types.UID{},
		early:   map[types.UID]map[string][]string{},
		changed: make(chan struct{}),
		stop:    stop,
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for _, kind := range watched {
		handler := cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { r.addVersion(kind, object, false) },
			UpdateFunc: func(_, object any) { r.addVersion(kind, object, false) },
			DeleteFunc: func(object any) { r.addVersion(kind, object, true) },
		}
		if _, err := factory.ForResource(resources[kind]).Informer().AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("watch for %s: %w", kind, err)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    r.addEvent,
		UpdateFunc: func(_, object any) { r.addEvent(object) },
	}
	if _, err := factory.ForResource(eventResource).Informer().AddEventHandler(handler); err != nil {
		return nil, fmt.Errorf("watch for events: %w", err)
	}
	factory.Start(running.Done())
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			stop()
			return nil, errors.New("the recorder's caches are not filled")
		}
	}
	return r, nil
}

// addVersion records a version of an object.
func (r *recorder) addVersion(kind string, seen any, gone bool) {
	if last, missed := seen.(cache.DeletedFinalStateUnknown); missed {
		seen = last.Obj
	}
	object, ok := seen.(*unstructured.Unstructured)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.lifeOf(kind, object)
	one.object, one.gone = object, gone
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	if n := len(one.phases); phase != "" && (n == 0 || one.phases[n-1] != phase) {
		one.phases = append(one.phases, phase)
	}
	r.tell()
}

func (r *recorder) lifeOf(kind string, object *unstructured.Unstructured) *life {
	one := r.lives[object.GetUID()]
	if one != nil {
		return one
	}
	at := objectKey{kind, object.GetNamespace(), object.GetName()}
	one = &life{kind: kind, number: 1, events: map[string][]string{}}
	if before := r.lives[r.latest[at]]; before != nil {
		one.number = before.number + 1
	}
	maps.Copy(one.events, r.early[object.GetUID()])
	r.lives[object.GetUID()], r.latest[at] = one, object.GetUID()
	return one
}

// addEvent records an event, which may arrive before its object.
func (r *recorder) addEvent(seen any) {
	event, ok := seen.(*unstructured.Unstructured)
	if !ok {
		return
	}
	uid, _, _ := unstructured.NestedString(event.Object, "involvedObject", "uid")
	kind, _, _ := unstructured.NestedString(event.Object, "type")
	reason, _, _ := unstructured.NestedString(event.Object, "reason")
	message, _, _ := unstructured.NestedString(event.Object, "message")
	r.mu.Lock()
	defer r.mu.Unlock()
	said := kind + " " + reason
	if source, _, _ := unstructured.NestedString(event.Object, "source", "component"); source != eventSource {
		said += ofProvisioner
	}
	events := r.early[types.UID(uid)]
	if one := r.lives[types.UID(uid)]; one != nil {
		events = one.events
	} else if events == nil {
		events = map[string][]string{}
		r.early[types.UID(uid)] = events
	}
	if before := events[said]; !slices.Contains(before, message) {
		events[said] = append(slices.Clone(before), message)
	}
	r.tell()
}

func (r *recorder) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// at returns the latest object with the key, nil if there was none.
func (r *recorder) at(key objectKey) *life {
	r.mu.Lock()
	defer r.mu.Unlock()
	return copied(r.lives[r.latest[key]])
}

// byUID returns an object, nil if no watch has reported it.
func (r *recorder) byUID(uid types.UID) *life {
	r.mu.Lock()
	defer r.mu.Unlock()
	return copied(r.lives[uid])
}

// all returns all objects, the oldest first.
func (r *recorder) all() []*life {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lives []*life
	for _, one := range r.lives {
		lives = append(lives, copied(one))
	}
	slices.SortFunc(lives, func(a, b *life) int { return a.number - b.number })
	return lives
}

func copied(one *life) *life {
	if one == nil {
		return nil
	}
	result := *one
	result.phases, result.events = slices.Clone(one.phases), maps.Clone(one.events)
	return &result
}

// await waits until the condition holds. It checks after every change.
func (r *recorder) await(ctx context.Context, holds func() bool) error {
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
