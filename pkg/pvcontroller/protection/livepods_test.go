package protection

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

// lister answers after a second and remembers when each list started.
type lister struct {
	mu      sync.Mutex
	started []time.Time
	err     error
}

func (l *lister) list(context.Context, string) ([]*v1.Pod, error) {
	l.mu.Lock()
	l.started = append(l.started, time.Now())
	l.mu.Unlock()
	<-time.After(time.Second)
	return []*v1.Pod{{}}, l.err
}

func TestListStartsAfterCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lister{}
		pods := newLivePods(l.list)
		var callers sync.WaitGroup
		for i := range 30 {
			callers.Go(func() {
				<-time.After(time.Duration(i) * 100 * time.Millisecond)
				came := time.Now()
				if _, err := pods.List(t.Context(), "ns"); err != nil {
					t.Error(err)
				}
				l.mu.Lock()
				defer l.mu.Unlock()
				served := false
				for _, start := range l.started {
					served = served || !start.Before(came) && start.Add(time.Second).Compare(time.Now()) <= 0
				}
				if !served {
					t.Errorf("caller %d got a list that started before it came", i)
				}
			})
		}
		callers.Wait()
		if lists := len(l.started); lists > 5 {
			t.Errorf("30 callers in 3 seconds took %d lists of a second, want them shared", lists)
		}
	})
}

func TestFailedListIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lister{err: errors.New("no")}
		pods := newLivePods(l.list)
		if _, err := pods.List(t.Context(), "ns"); err == nil {
			t.Error("the error was lost")
		}
		l.err = nil
		if found, err := pods.List(t.Context(), "ns"); err != nil || len(found) != 1 {
			t.Errorf("List = %v, %v", found, err)
		}
	})
}

func TestCanceledCallerReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newLivePods((&lister{}).list)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := pods.List(ctx, "ns"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("List = %v", err)
		}
		<-time.After(2 * time.Second) // the list itself goes on
	})
}
