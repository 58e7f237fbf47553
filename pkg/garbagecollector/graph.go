package garbagecollector

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// virtualLifetime is how long the first live read of an owner that is not in the graph keeps its dependents: its kind
// is not collected, or not listed yet.
const virtualLifetime = 10 * time.Second

// sharedGraph is the graph behind its mutex. All parts of a collector share it.
//
// The mutex also guards what must change together with the graph: fields of other parts whose comments say so. No
// request is sent under it. It is the last one to be taken: no other mutex of this package is locked while it is
// held.
type sharedGraph struct {
	clock clock.WithTicker
	// enqueue has a worker judge the object.
	enqueue func(types.UID)

	mu sync.Mutex
	// The mutex guards the fields below.
	graph *graph.Graph
	// working: objects that change are judged.
	working bool
}

func newSharedGraph(clock clock.WithTicker, enqueue func(types.UID)) *sharedGraph {
	s := &sharedGraph{clock: clock, enqueue: enqueue, graph: graph.New()}
	s.graph.SetVirtualLifetime(virtualLifetime)
	return s
}

// change changes the graph, and enqueues the objects to be judged again.
func (s *sharedGraph) change(f func(*graph.Graph)) {
	s.mu.Lock()
	f(s.graph)
	changed, working := s.graph.TakeChanged(), s.working
	s.mu.Unlock()
	if working {
		for _, uid := range changed {
			s.enqueue(uid)
		}
	}
}

// begin has every object judged that may need an action.
func (s *sharedGraph) begin() {
	s.mu.Lock()
	s.working = true
	s.graph.TakeChanged()
	var unsettled []types.UID
	s.graph.Unsettled(func(uid types.UID) { unsettled = append(unsettled, uid) })
	s.mu.Unlock()
	for _, uid := range unsettled {
		s.enqueue(uid)
	}
}

// judge returns the judgement of an object now.
func (s *sharedGraph) judge(uid types.UID) (graph.Judgement, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Judge(uid, s.clock.Now())
}

// nodes returns the number of objects and missing owners.
func (s *sharedGraph) nodes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.graph.Len()
}

// signal wakes the reader of the channel. It keeps one signal until that is read.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) wake() {
	select {
	case s <- struct{}{}:
	default:
	}
}
