package operator

import (
	"context"
	"errors"
	"io"
	"log"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

// Program is the name in messages.
const Program = "bucket-operator"

// Finalizer is the finalizer of a Bucket.
const Finalizer = "example.exeunt.io/bucket"

// Participant is what the operator says to Alive.
var Participant = alive.Participant{Finalizer: "buckets.example.exeunt.io/teardown", Namespace: Program,
	Text: "buckets, which are directories"}

// Resource is the resource of Buckets.
var Resource = schema.GroupVersionResource{Group: "example.exeunt.io", Version: "v1", Resource: "buckets"}

// aliveKey is the key of Alive in the queue. Keys of Buckets have a slash.
const aliveKey = alive.Name

const (
	// firstRetry and lastRetry bound the time between two tries for one object.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	// requestLimit bounds the requests for one key: an API server that does not answer is asked again.
	requestLimit = 30 * time.Second
)

// Operator makes and removes buckets. Only one runs for a directory.
type Operator struct {
	client      dynamic.Interface
	directories *directories
	log         *log.Logger

	buckets, alive cache.SharedIndexInformer
	queue          workqueue.TypedRateLimitingInterface[string]
}

// New returns an operator for the buckets below the directory.
func New(client dynamic.Interface, directory string, log *log.Logger) (*Operator, error) {
	opened, err := open(directory)
	if err != nil {
		return nil, err
	}
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	return &Operator{
		client: client, directories: opened, log: log,
		buckets: informers.ForResource(Resource).Informer(), alive: informers.ForResource(alive.Resource).Informer(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)),
	}, nil
}

// Run works until the context ends, and calls ready once the operator knows all Buckets. The kind Alive may come later.
func (o *Operator) Run(ctx context.Context, ready func()) error {
	registration, err := o.buckets.AddEventHandler(o.handler(cache.DeletionHandlingMetaNamespaceKeyFunc))
	if err != nil {
		return err
	}
	if _, err := o.alive.AddEventHandler(o.handler(func(any) (string, error) { return aliveKey, nil })); err != nil {
		return err
	}
	running := make(chan struct{}, 3)
	start := func(work func()) {
		go func() {
			work()
			running <- struct{}{}
		}()
	}
	for _, informer := range []cache.SharedIndexInformer{o.buckets, o.alive} {
		if err := informer.SetWatchErrorHandlerWithContext(o.watchFailed); err != nil {
			return err
		}
		start(func() { informer.RunWithContext(ctx) })
	}
	start(func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			ready()
			for o.next(ctx) {
			}
		}
	})
	<-ctx.Done()
	o.queue.ShutDown()
	for range cap(running) {
		<-running
	}
	return o.directories.root.Close()
}

func (o *Operator) handler(key func(any) (string, error)) cache.ResourceEventHandler {
	add := func(object any) {
		if name, err := key(object); err == nil {
			o.queue.Add(name)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }, DeleteFunc: add}
}

// watchFailed says why objects cannot be watched. The reflector tries again. The kind Alive may be absent.
func (o *Operator) watchFailed(_ context.Context, r *cache.Reflector, err error) {
	absent := apierrors.ReasonForError(err) == metav1.StatusReasonNotFound
	if !errors.Is(err, io.EOF) && !apierrors.IsResourceExpired(err) && !absent {
		o.log.Printf("watch %s: %v; tried again", r.TypeDescription(), err)
	}
}

// next reconciles one key, and returns false once the queue has ended.
func (o *Operator) next(ctx context.Context) bool {
	key, ended := o.queue.Get()
	if ended {
		return false
	}
	defer o.queue.Done(key)
	limited, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	reconcile := o.reconcileBucket
	if key == aliveKey {
		reconcile = func(ctx context.Context, _ string) error { return o.reconcileAlive(ctx) }
	}
	switch err := reconcile(limited, key); {
	case err == nil:
		o.queue.Forget(key)
	case ctx.Err() != nil:
	default:
		o.log.Printf("%s: %v; tried again", key, err)
		o.queue.AddRateLimited(key)
	}
	return true
}

// cached returns the object of the key in the informer, nil if there is none.
func cached(informer cache.SharedIndexInformer, key string) *unstructured.Unstructured {
	found, exists, err := informer.GetStore().GetByKey(key)
	object, ok := found.(*unstructured.Unstructured)
	if err != nil || !exists || !ok {
		return nil
	}
	return object
}
