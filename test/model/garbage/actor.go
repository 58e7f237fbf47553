package garbage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
	"github.com/exeunt-io/exeunt/pkg/garbagecollector"
)

func uidOf(text string) types.UID { return types.UID(text) }

// Pass is a part of a collector that works until it ends.
type Pass int

const (
	// Work judges one object.
	Work Pass = iota
	// Barrier runs a barrier.
	Barrier
	// Cycles searches for cycles.
	Cycles
	passes
)

// String names the pass.
func (p Pass) String() string { return [...]string{"worker", "barrier", "search for cycles"}[p] }

// waiting is a call and where its answer goes.
type waiting struct {
	call   Call
	answer chan Answer
	sent   time.Time
}

// actor is a running collector. It works only while settle is called. It lives in a bubble of
// testing/synctest.
type actor struct {
	config    *Config
	ctx       context.Context
	stop      context.CancelFunc
	clock     *clocktesting.FakeClock
	queue     *queue
	collector *garbagecollector.Stepped
	calls     chan waiting
	ended     chan Pass
	// waiting are the calls without an answer, in the order of their texts.
	waiting []waiting
	working [passes]bool
	// failed is a panic of a pass.
	failed error
}

// unreadableAfter is how long a barrier waits for kinds that cannot be read.
const unreadableAfter = 3 * time.Second

func newActor(config *Config, writer rest.Interface) *actor {
	a := &actor{
		config: config, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), queue: newQueue(),
		calls: make(chan waiting, 64), ended: make(chan Pass, 8),
	}
	ctx, stop := context.WithCancel(context.Background())
	a.ctx, a.stop = klog.NewContext(ctx, logr.Discard()), stop
	kinds := make([]*graph.Kind, len(config.Kinds))
	for i, k := range config.Kinds {
		kinds[i] = k.Kind
	}
	a.collector = garbagecollector.Step(garbagecollector.Config{
		Reads: reader{config}, Barriers: reader{config}, REST: writer, Recorder: &record.FakeRecorder{}, Clock: a.clock,
		UnreadableAfter: unreadableAfter,
	}, a.queue, kinds...)
	return a
}

// end ends the collector; what it still sends is lost.
func (a *actor) end() {
	a.stop()
	synctest.Wait()
}

// pass runs what may send calls.
func (a *actor) pass(p Pass, work func(ctx context.Context)) {
	a.working[p] = true
	ctx := context.WithValue(a.ctx, contextKey{}, sender{a, p})
	go func() {
		defer func() {
			if r := recover(); r != nil {
				a.failed = fmt.Errorf("panic: %v", r)
			}
			a.ended <- p
		}()
		work(ctx)
	}()
}

// maxSilent bounds the passes without a call between two inputs.
const maxSilent = 200

// errRestless: the collector works and works without sending anything.
var errRestless = errors.New("the collector judges objects again and again")

// settle lets the collector work until each pass waits for an answer. Passes that send nothing
// come before anything else.
func (a *actor) settle() error {
	for range maxSilent {
		synctest.Wait()
		for len(a.calls) > 0 {
			a.waiting = append(a.waiting, <-a.calls)
		}
		for len(a.ended) > 0 {
			a.working[<-a.ended] = false
		}
		if a.failed != nil {
			return a.failed
		}
		if !a.workSilently() {
			slices.SortStableFunc(a.waiting, func(x, y waiting) int { return compareCalls(x.call, y.call) })
			return nil
		}
	}
	return errRestless
}

// workSilently begins a pass that sends nothing, and returns false if there is none.
func (a *actor) workSilently() bool {
	if !a.working[Work] {
		due, _ := a.queue.list()
		for _, uid := range due {
			if a.collector.IsSilent(uid) {
				a.work(uid)
				return true
			}
		}
	}
	if !a.working[Cycles] && a.collector.AwaitsCycles() && !a.collector.HasReleasable() {
		a.pass(Cycles, a.collector.ReleaseCycles)
		return true
	}
	return false
}

func (a *actor) work(uid types.UID) {
	a.queue.take(uid)
	a.pass(Work, func(ctx context.Context) { a.collector.Reconcile(ctx, uid) })
}

func compareCalls(a, b Call) int {
	x, y := fmt.Sprint(a), fmt.Sprint(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// see delivers an event. A reflector says how far the watch has come after that: after a deletion it is
// interrupted in between, until the next event or bookmark.
func (a *actor) see(e Event) error {
	kind := a.config.Slots[e.Object.Slot].Kind
	object := a.config.metadata(e.Object)
	feed := a.collector.Feed(kind)
	if e.Deleted {
		object.ResourceVersion = a.config.Kinds[kind].version(e.Version)
		return feed.Delete(object)
	}
	err := feed.Update(object)
	feed.UpdateResourceVersion(a.config.Kinds[kind].version(e.Version))
	return err
}

// list delivers a list.
func (a *actor) list(kind int, objects []*Object, version int) error {
	items := make([]any, len(objects))
	for i, o := range objects {
		items[i] = a.config.metadata(o)
	}
	return a.collector.Feed(kind).Replace(items, a.config.Kinds[kind].version(version))
}
