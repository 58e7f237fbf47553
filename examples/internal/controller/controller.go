package controller

import (
	"context"
	"errors"
	"io"
	"log"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"github.com/exeunt-io/exeunt/examples/internal/guest"
)

// Kind is what an example adds: its resource, and the guest of an object.
type Kind struct {
	// Program is the name in messages and events.
	Program   string
	Resource  schema.GroupVersionResource
	Finalizer string
	// Command returns how the guest of an object is started.
	Command func(object *unstructured.Unstructured) (guest.Command, error)
	// PowerOff are the signals that end a guest. The next one is sent if the guest still runs.
	PowerOff []syscall.Signal
}

// Controller runs the guests of one host.
type Controller struct {
	kind   Kind
	host   string
	client dynamic.NamespaceableResourceInterface
	dir    *guest.Dir
	events record.EventRecorder
	log    *log.Logger

	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]

	mu        sync.Mutex
	timers    map[string]*time.Timer
	processes map[types.UID]*guest.Process
}

// New returns a controller for the objects whose spec.host is the host.
func New(kind Kind, host string, client dynamic.Interface, dir *guest.Dir, events record.EventRecorder,
	log *log.Logger) *Controller {
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	return &Controller{
		kind: kind, host: host, client: client.Resource(kind.Resource), dir: dir, events: events, log: log,
		informer: informers.ForResource(kind.Resource).Informer(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)),
		timers: map[string]*time.Timer{}, processes: map[types.UID]*guest.Process{},
	}
}

const (
	// firstRetry and lastRetry bound the time between two tries for one object.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	// workers is how many guests can be powered off at the same time, which may take a second for each.
	workers = 32
)

// Run works until the context ends, and calls ready once the controller knows all objects. Guests run on.
func (c *Controller) Run(ctx context.Context, ready func()) error {
	registration, err := c.informer.AddEventHandler(c.handler())
	if err != nil {
		return err
	}
	if err := c.informer.SetWatchErrorHandlerWithContext(c.watchFailed); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { c.informer.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		for _, known := range c.dir.Records() {
			c.queue.Add(known.Key)
		}
		for range workers {
			running.Go(func() {
				for c.next(ctx) {
				}
			})
		}
		ready()
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return nil
}

// handler adds the key of each event to the queue. No event is filtered: a deadline moves without a new generation.
func (c *Controller) handler() cache.ResourceEventHandler {
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }, DeleteFunc: add}
}

// watchFailed logs why objects cannot be watched. The reflector tries again.
func (c *Controller) watchFailed(_ context.Context, _ *cache.Reflector, err error) {
	switch {
	case errors.Is(err, io.EOF), apierrors.IsResourceExpired(err): // the end of a watch
	case apierrors.ReasonForError(err) == metav1.StatusReasonNotFound:
		c.log.Printf("the API server does not serve %s: apply deploy/crd.yaml; tried again", c.kind.Resource.GroupResource())
	default:
		c.log.Printf("watch %s: %v; tried again", c.kind.Resource.GroupResource(), err)
	}
}

// next reconciles one key, and returns false once the queue has ended.
func (c *Controller) next(ctx context.Context) bool {
	key, ended := c.queue.Get()
	if ended {
		return false
	}
	defer c.queue.Done(key)
	started, err := c.reconcile(ctx, key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		c.log.Printf("%s: %v; tried again", key, err)
		c.queue.AddRateLimited(key)
	case !started: // a guest that ends again and again is started less and less often
		c.queue.Forget(key)
	}
	return true
}

// setTimer sets the one timer of the key.
func (c *Controller) setTimer(key string, remaining time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timer := c.timers[key]; timer != nil {
		timer.Stop()
	}
	c.timers[key] = time.AfterFunc(remaining, func() { c.queue.Add(key) })
}

func (c *Controller) stopTimer(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timer := c.timers[key]; timer != nil {
		timer.Stop()
	}
	delete(c.timers, key)
}

// process returns the running guest of an object, or nil if it has ended.
func (c *Controller) process(key string, uid types.UID) (*guest.Process, error) {
	c.mu.Lock()
	known := c.processes[uid]
	c.mu.Unlock()
	if known != nil {
		select {
		case <-known.Ended():
			c.mu.Lock()
			delete(c.processes, uid)
			c.mu.Unlock()
			_ = known.Close()
		default:
			return known, nil
		}
	}
	found, err := c.dir.Find(uid)
	if found != nil {
		c.follow(key, uid, found)
	}
	return found, err
}

// follow reconciles the key when the guest ends.
func (c *Controller) follow(key string, uid types.UID, process *guest.Process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes[uid] = process
	go func() {
		<-process.Ended()
		if object := c.cached(key); object != nil && object.GetDeletionTimestamp() == nil {
			c.queue.AddRateLimited(key)
			return
		}
		c.queue.Add(key)
	}()
}

// cached returns the object as the informer has it, nil if there is none on this host.
func (c *Controller) cached(key string) *unstructured.Unstructured {
	found, exists, err := c.informer.GetStore().GetByKey(key)
	object, ok := found.(*unstructured.Unstructured)
	if !exists || err != nil || !ok || c.elsewhere(object) {
		return nil
	}
	return object
}

// elsewhere reports whether the guest of the object belongs to another host.
func (c *Controller) elsewhere(object *unstructured.Unstructured) bool {
	host, _, _ := unstructured.NestedString(object.Object, "spec", "host")
	return host != c.host
}
