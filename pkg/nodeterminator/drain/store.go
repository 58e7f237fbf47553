package drain

import (
	"context"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// watch follows the pods of the node until the context ends.
func (n *Node) watch(ctx context.Context) {
	pods := n.drainer.config.Client.CoreV1().Pods(metav1.NamespaceAll)
	selected := fields.OneTermEqualSelector("spec.nodeName", n.name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selected
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selected
			return pods.Watch(ctx, options)
		},
	}
	// The deadline is near: a watch that broke must not wait for half a minute.
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 4, Cap: 4 * time.Second}
	watched := cache.ToListWatcherWithWatchListSemantics(source, n.drainer.config.Client)
	cache.NewReflectorWithOptions(watched, &v1.Pod{}, store{n},
		cache.ReflectorOptions{Name: "pods of node " + n.name, Backoff: backoff}).RunWithContext(ctx)
}

// store takes the pods of the watch, by UID.
type store struct{ node *Node }

// Add takes a new pod.
func (s store) Add(object any) error { return s.Update(object) }

// Update takes a changed pod.
func (s store) Update(object any) error {
	if p, is := object.(*v1.Pod); is && p.Spec.NodeName == s.node.name {
		s.change(func() { s.node.see(p) })
	}
	return nil
}

// Delete takes the last state of a pod that is gone.
func (s store) Delete(object any) error {
	if p, is := object.(*v1.Pod); is && p.Spec.NodeName == s.node.name {
		s.change(func() {
			s.node.see(p)
			s.node.lose(p.UID, true)
		})
	}
	return nil
}

// Replace takes all pods of the node. Nobody saw the end of those that are missing.
func (s store) Replace(objects []any, _ string) error {
	s.change(func() {
		listed := map[types.UID]bool{}
		for _, object := range objects {
			if p, is := object.(*v1.Pod); is && p.Spec.NodeName == s.node.name {
				listed[p.UID] = true
				s.node.see(p)
			}
		}
		for id := range s.node.pods {
			if !listed[id] {
				s.node.lose(id, false)
			}
		}
		if s.node.synced.IsZero() {
			s.node.synced = s.node.drainer.clock.Now()
		}
	})
	return nil
}

// Resync does nothing.
func (store) Resync() error { return nil }

func (s store) change(f func()) {
	d := s.node.drainer
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes[s.node.name] != s.node {
		return
	}
	f()
	d.send()
	d.notify(s.node)
}

// see takes a pod as it is now.
func (n *Node) see(p *v1.Pod) {
	d := n.drainer
	p = trimmed(p)
	r := n.pods[p.UID]
	n.seen[p.UID] = true
	if r == nil {
		r = &tracked{node: n, pod: p, matched: -1}
		n.pods[p.UID], d.records[p.UID] = r, r
		if !n.synced.IsZero() && pod.KindOf(p) != pod.Mirror && !n.view.Returns(p) {
			n.lastNew = d.clock.Now()
		}
	}
	if !maps.Equal(r.pod.Labels, p.Labels) {
		r.matched = -1
	}
	// A removal makes the pod Failed first.
	r.finished = r.finished || n.view.EndOf(p) == pod.Finished && !r.forcing && r.credit == notOurs
	r.pod = p
	if p.DeletionTimestamp != nil {
		d.queue.drop(p.UID)
		r.granted = max(r.granted, granted(p))
	}
	n.settle(r)
}

// lose takes the end of a pod.
func (n *Node) lose(id types.UID, seen bool) {
	r := n.pods[id]
	delete(n.pods, id)
	delete(n.drainer.records, id)
	n.drainer.queue.drop(id)
	r.gone, r.seenEnd = true, seen
	n.settle(r)
}
