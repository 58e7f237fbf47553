package protection

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/internal/answer"
)

// livePods lists the pods of a namespace from the API server. Callers during a running
// list share the next list: the running list may miss a pod that was created since.
type livePods struct {
	list func(ctx context.Context, namespace string) ([]*v1.Pod, error)

	mu      sync.Mutex
	running map[string]*listing // by namespace
	waiting map[string]*listing
}

// listing is one list. Its result is valid once done is closed.
type listing struct {
	done chan struct{}
	pods []*v1.Pod
	err  error
}

func newLivePods(list func(ctx context.Context, namespace string) ([]*v1.Pod, error)) *livePods {
	return &livePods{list: list, running: map[string]*listing{}, waiting: map[string]*listing{}}
}

// List returns the pods from a list that started after the call.
func (l *livePods) List(ctx context.Context, namespace string) ([]*v1.Pod, error) {
	mine, first := l.join(namespace)
	if first {
		go l.run(context.WithoutCancel(ctx), namespace)
	}
	select {
	case <-mine.done:
		return mine.pods, mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join returns the list that starts next, and whether the caller must start it.
func (l *livePods) join(namespace string) (next *listing, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next = l.waiting[namespace]
	if next == nil {
		next = &listing{done: make(chan struct{})}
		l.waiting[namespace] = next
	}
	return next, l.running[namespace] == nil && l.start(namespace)
}

// start makes the waiting list the running one; it returns whether there is any.
func (l *livePods) start(namespace string) bool {
	next := l.waiting[namespace]
	delete(l.waiting, namespace)
	if next == nil {
		delete(l.running, namespace)
		return false
	}
	l.running[namespace] = next
	return true
}

// run lists until no caller waits.
func (l *livePods) run(ctx context.Context, namespace string) {
	for again := true; again; {
		l.mu.Lock()
		current := l.running[namespace]
		l.mu.Unlock()
		current.pods, current.err = l.list(ctx, namespace)
		close(current.done)
		l.mu.Lock()
		again = l.start(namespace)
		l.mu.Unlock()
	}
}

// listPods lists the pods of a namespace from the API server.
func (c *Controller) listPods(client kubernetes.Interface) func(ctx context.Context,
	namespace string) ([]*v1.Pod, error) {
	return func(ctx context.Context, namespace string) ([]*v1.Pod, error) {
		end, err := c.begin(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
		found, err := answer.CheckedList(client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{}))
		if err != nil {
			return nil, fmt.Errorf("list pods of namespace %s: %w", namespace, err)
		}
		pods := make([]*v1.Pod, len(found.Items))
		for i := range found.Items {
			pods[i] = &found.Items[i]
		}
		return pods, nil
	}
}
