package harness

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/internal/sandbox"
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
		shared[setup] = &sharedCluster{}
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
	return NewSession(t, sharedBySetup(setup).start(t, setup), options...)
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
		c.running.finish(t)
		c.running = nil
	}
}

// start returns the running cluster. The lock is held meanwhile, so that the other
// users of the setup wait and those of other setups do not.
func (c *sharedCluster) start(t testing.TB, setup Setup) *Cluster {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = mustStart(t, setup)
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
