package process

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// resources are the kinds of objects that programs cache.
var resources = map[string]func() runtime.Object{
	"persistentvolumes":      func() runtime.Object { return &v1.PersistentVolume{} },
	"persistentvolumeclaims": func() runtime.Object { return &v1.PersistentVolumeClaim{} },
	"pods":                   func() runtime.Object { return &v1.Pod{} },
	"storageclasses":         func() runtime.Object { return &storagev1.StorageClass{} },
	"volumeattachments":      func() runtime.Object { return &storagev1.VolumeAttachment{} },
	"leases":                 func() runtime.Object { return &coordinationv1.Lease{} },
}

// actor is a running program. It works only while settle is called; between two calls all
// its goroutines wait. It lives in a bubble of testing/synctest.
type actor struct {
	ctx       context.Context
	stop      context.CancelFunc
	program   *Program
	informers map[string]*informer
	// listed are the versions of claims that did not come by a watch.
	listed map[string]bool
	// creations are the claims whose creation the program saw; isFirst: it leads from the beginning of the world on.
	creations *controller.Creations
	isFirst   bool
	known     map[types.UID]bool
	calls     chan waiting
	// waiting are the calls without an answer, in the order of their text.
	waiting []waiting
	// passes has the loop of each pass that ended, -1 for the start; working are the loops of
	// those that have not ended.
	passes  chan int
	working []int
	// ended: the program ended itself.
	ended bool
	// failed is the error of the start.
	failed error
}

// An actor that waits for time to pass sleeps for shortSleep a few times, which is enough for
// the writer of the journal, and then for longSleep; settleLimit bounds the sleep of one pass.
const (
	shortSleep  = time.Microsecond
	shortSleeps = 5
	longSleep   = 60 * time.Millisecond
	settleLimit = 10 * time.Minute
)

// newActor builds the program on empty caches.
func newActor(build Build, client kubernetes.Interface, options Options) (*actor, error) {
	a := &actor{
		informers: map[string]*informer{}, listed: map[string]bool{}, known: map[types.UID]bool{},
		isFirst: options.Term <= 1, calls: make(chan waiting, 64), passes: make(chan int, 64),
	}
	ctx, stop := context.WithCancel(context.Background())
	a.ctx, a.stop = klog.NewContext(context.WithValue(ctx, contextKey{}, a), logr.Discard()), stop
	env := &Env{
		Client: client, Informers: map[string]cache.SharedIndexInformer{}, Driver: driver{}, Options: options,
		Streamed: func(version string) bool { return !a.listed[version] },
	}
	a.creations = controller.NewCreations(func(object metav1.Object) bool {
		return !storage.NeverBound(object.(*v1.PersistentVolumeClaim))
	})
	env.Creations = a.creations
	for resource := range resources {
		a.informers[resource] = newInformer()
		env.Informers[resource] = a.informers[resource]
	}
	env.End = func(error) { a.ended = true }
	env.Filter = func(resource string, keep func(runtime.Object) bool) { a.informers[resource].keep = keep }
	var err error
	if a.program, err = build(env); err != nil {
		stop()
		return nil, fmt.Errorf("build program: %w", err)
	}
	return a, nil
}

// start fills the caches and starts the program.
func (a *actor) start(listed []server.Object) error {
	for _, object := range listed {
		if err := a.see(object, true); err != nil {
			return err
		}
	}
	if a.program.Run != nil {
		go func() {
			if err := safely(func() error { a.program.Run(a.ctx); return nil }); err != nil {
				a.failed = err
			}
		}()
	}
	a.pass(Starting, func() { a.failed = safely(func() error { return a.program.Start(a.ctx) }) })
	return nil
}

// Starting and Beside stand among the numbers of loops for the start of a program and for what
// works beside its loops.
const (
	Starting = -1
	Beside   = -2
)

// safely returns a panic as an error: a mutant may panic, and must not end the process of the model.
func safely(work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return work()
}

// pass runs what may send calls.
func (a *actor) pass(loop int, work func()) {
	a.working = append(a.working, loop)
	go func() {
		work()
		a.passes <- loop
	}()
}

// see changes a cache, by the watch or by a list.
func (a *actor) see(object server.Object, listed bool) error {
	cached, known := a.informers[object.Resource]
	if !known {
		return nil
	}
	key := strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
	if object.JSON == "" {
		return cached.see(key, nil, listed)
	}
	typed := resources[object.Resource]()
	if err := json.Unmarshal([]byte(object.Wire()), typed); err != nil {
		return fmt.Errorf("decode %s %s: %w", object.Resource, key, err)
	}
	if claim, is := typed.(*v1.PersistentVolumeClaim); is {
		a.seeClaim(claim, fmt.Sprint(object.Version), listed)
	}
	return cached.see(key, typed, listed)
}

// seeClaim notes how the version of a claim came into the cache.
func (a *actor) seeClaim(claim *v1.PersistentVolumeClaim, version string, listed bool) {
	a.listed[version] = a.listed[version] || listed
	event := watch.Event{Type: watch.Modified, Object: claim}
	if !a.known[claim.UID] && (!listed || a.isFirst) {
		event.Type = watch.Added
	}
	a.known[claim.UID] = true
	a.creations.Observe(event)
}

// reconcile starts a pass of a loop.
func (a *actor) reconcile(loop int, key string) {
	a.pass(loop, func() { a.program.Loops[loop].Reconcile(context.WithValue(a.ctx, loopKey{}, loop), key) })
}

// send hands a call to the model and waits for the answer.
func (a *actor) send(ctx context.Context, call Call) (Answer, error) {
	w := waiting{call: call, answer: make(chan Answer, 1), loop: Beside}
	if loop, known := ctx.Value(loopKey{}).(int); known {
		w.loop = loop
	}
	select {
	case a.calls <- w:
	case <-a.ctx.Done():
		return Answer{}, a.ctx.Err()
	}
	select {
	case answer := <-w.answer:
		if answer.Lost {
			return Answer{}, errLost
		}
		return answer, nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	case <-a.ctx.Done(): // the process ends
		return Answer{}, a.ctx.Err()
	}
}

// answer answers the call with the number.
func (a *actor) answer(number int, answer Answer) error {
	if number >= len(a.waiting) {
		return fmt.Errorf("%w: it waits for %d answers, and gets number %d", ErrNotRepeated, len(a.waiting), number+1)
	}
	w := a.waiting[number]
	a.waiting = slices.Delete(a.waiting, number, number+1)
	w.answer <- answer
	return nil
}

// settle lets the program work until it waits for an answer or has nothing to do. Time passes
// while the program waits for nothing else.
func (a *actor) settle() error {
	sleep, slept := shortSleep, time.Duration(0)
	for tries := 0; ; tries++ {
		synctest.Wait()
		for len(a.calls) > 0 {
			a.waiting = append(a.waiting, <-a.calls)
		}
		for len(a.passes) > 0 {
			ended := slices.Index(a.working, <-a.passes)
			a.working = slices.Delete(a.working, ended, ended+1)
		}
		if len(a.working) <= len(a.waiting) || tries > shortSleeps && len(a.waiting) > 0 {
			break
		}
		if slept > settleLimit {
			return fmt.Errorf("a pass neither sends a call nor ends within %s", settleLimit)
		}
		if tries == shortSleeps {
			sleep = longSleep
		}
		<-time.After(sleep)
		slept += sleep
	}
	slices.SortStableFunc(a.waiting, func(x, y waiting) int { return strings.Compare(x.call.String(), y.call.String()) })
	return a.failed
}

// end stops the program; what it still sends is lost.
func (a *actor) end() {
	a.stop()
	synctest.Wait()
}

// version returns the version of the cached object with the UID, "" for none.
func (a *actor) version(uid string) string {
	for _, cached := range a.informers {
		for _, object := range cached.List() {
			if accessor, ok := object.(metav1.Object); ok && string(accessor.GetUID()) == uid {
				return accessor.GetResourceVersion()
			}
		}
	}
	return ""
}

func sortedKeys(store cache.Store) []string {
	keys := store.ListKeys()
	slices.Sort(keys)
	return keys
}
