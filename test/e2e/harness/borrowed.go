package harness

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lendingPool has clusters of one setup that tests use one after the other. A cluster starts
// when all others are in use. All stop with the last test that is counted.
type lendingPool struct {
	mu    sync.Mutex
	users int
	idle  []*lentCluster
}

// lentCluster is a cluster and what it has without the objects of tests.
type lentCluster struct {
	*Cluster
	untouched inventory
}

var (
	lendingMu sync.Mutex
	lending   = map[Setup]*lendingPool{}
)

func poolOf(setup Setup) *lendingPool {
	lendingMu.Lock()
	defer lendingMu.Unlock()
	if lending[setup] == nil {
		lending[setup] = &lendingPool{}
	}
	return lending[setup]
}

// Borrow returns a session in a cluster that no other test uses at the same time. The test
// runs in parallel with others. Afterwards the objects of the test are deleted, except those
// with the label [StaysLabel]. A cluster with other traces of the test is used by no other
// test. The setup must be without programs, which would remember objects.
func Borrow(t *testing.T, setup Setup, options ...Option) *Session {
	t.Helper()
	if !setup.NoPrograms {
		t.Fatal("a cluster with programs cannot be lent: their caches have the objects of other tests")
	}
	pool := poolOf(setup)
	pool.addUser()
	t.Cleanup(func() { pool.removeUser(t) })
	t.Parallel()
	cluster := pool.take()
	if cluster == nil {
		cluster = startLent(t, setup)
	}
	t.Cleanup(func() { pool.giveBack(t, cluster) })
	return NewSession(t, cluster.Cluster, options...)
}

func startLent(t *testing.T, setup Setup) *lentCluster {
	t.Helper()
	started := mustStart(t, setup)
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	err := started.awaitSystemNamespaces(ctx)
	var untouched inventory
	if err == nil {
		untouched, err = takeInventory(ctx, started.Plane.RESTConfig())
	}
	if err != nil {
		started.finish(t)
		t.Fatalf("list what the cluster has without tests: %v", err)
	}
	return &lentCluster{started, untouched}
}

// awaitSystemNamespaces waits until the API server has created its namespaces, which it does
// after it is ready.
func (c *Cluster) awaitSystemNamespaces(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic,
			v1.NamespaceNodeLease} {
			switch _, err := c.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); {
			case apierrors.IsNotFound(err):
				return false, nil
			case err != nil:
				return false, err
			}
		}
		return true, nil
	})
}

func (p *lendingPool) addUser() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users++
}

func (p *lendingPool) removeUser(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	p.users--
	var ended []*lentCluster
	if p.users == 0 {
		ended, p.idle = p.idle, nil
	}
	p.mu.Unlock()
	for _, cluster := range ended {
		cluster.finish(t)
	}
}

// take returns an idle cluster, or nil.
func (p *lendingPool) take() *lentCluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	cluster := p.idle[last]
	p.idle = slices.Delete(p.idle, last, last+1)
	return cluster
}

// giveBack deletes the objects of the test and lends the cluster again, or stops it.
func (p *lendingPool) giveBack(t *testing.T, cluster *lentCluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	if err := cluster.clean(ctx); err != nil {
		t.Logf("the cluster is not used again: %v", err)
		cluster.finish(t)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, cluster)
}
