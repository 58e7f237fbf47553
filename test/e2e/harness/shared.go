package harness

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// Timeout bounds every wait. A wait that ends well is far shorter.
	Timeout = 60 * time.Second
	// DeletionLimit is how long the deletion of a claim or a namespace may take on a
	// busy machine. With upstream both are deleted at once.
	DeletionLimit = 10 * time.Second
)

// sharedCluster is the cluster of one setup. The first user starts it, the last user
// stops it.
type sharedCluster struct {
	start func(testing.TB) *Cluster
	stop  func(*Cluster, testing.TB)

	mu      sync.Mutex
	users   int
	running *Cluster
}

var (
	sharedMu sync.Mutex
	shared   = map[Setup]*sharedCluster{}
)

func sharedBySetup(setup Setup) *sharedCluster {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if shared[setup] == nil {
		shared[setup] = &sharedCluster{
			start: func(t testing.TB) *Cluster { t.Helper(); return mustStart(t, setup) },
			stop:  (*Cluster).finish,
		}
	}
	return shared[setup]
}

// Parallel runs the test in parallel with others. The clusters of the setups, once
// started, run until the test and its subtests have ended.
//
// All parallel tests are counted before the first of them goes on, so a cluster stops
// with the last test that uses its setup.
func Parallel(t *testing.T, setups ...Setup) {
	t.Helper()
	for _, setup := range setups {
		c := sharedBySetup(setup)
		c.addUser()
		t.Cleanup(func() { c.removeUser(t) })
	}
	t.Parallel()
}

// Join returns a session in the cluster that all tests with the setup share. The test
// runs in parallel with others.
func Join(t *testing.T, setup Setup, options ...Option) *Session {
	t.Helper()
	Parallel(t, setup)
	return NewSession(t, sharedBySetup(setup).get(t), options...)
}

// Own returns a session in a cluster that no other test uses.
func Own(t testing.TB, setup Setup, options ...Option) *Session {
	t.Helper()
	return NewSession(t, OwnCluster(t, setup), options...)
}

// OwnCluster returns a cluster that stops with the test.
func OwnCluster(t testing.TB, setup Setup) *Cluster {
	t.Helper()
	c := mustStart(t, setup)
	t.Cleanup(func() { c.finish(t) })
	return c
}

func (c *sharedCluster) addUser() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
}

func (c *sharedCluster) removeUser(t testing.TB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	if c.users == 0 && c.running != nil {
		c.stop(c.running, t)
		c.running = nil
	}
}

// get returns the running cluster. It holds the lock while the cluster starts, so that the
// other users of the setup wait and those of other setups do not.
func (c *sharedCluster) get(t testing.TB) *Cluster {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = c.start(t)
	}
	return c.running
}

func mustStart(t testing.TB, setup Setup) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	c, err := startCluster(ctx, setup)
	if err != nil {
		t.Fatalf("start cluster %+v: %v", setup, err)
	}
	return c
}

// Binaries returns where the programs under test are: in the folder that EXEUNT_BIN
// names, else in bin of this checkout.
func Binaries() sandbox.Binaries {
	if dir := os.Getenv("EXEUNT_BIN"); dir != "" {
		return sandbox.Binaries{Dir: dir}
	}
	return sandbox.Binaries{Dir: InCheckout("bin")}
}

// InCheckout returns the path of a file in this checkout. The root is the folder with go.mod.
func InCheckout(elements ...string) string {
	root := "."
	for range 10 {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	return filepath.Join(append([]string{root}, elements...)...)
}

// FreePort returns a port of this machine that is free now.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := sandbox.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
