package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// patience bounds every wait; it is met only by what never comes.
const patience = 60 * time.Second

// clusters are started by the first test that needs them and shared by the rest.
var clusters = struct {
	sync.Mutex
	running map[setup]*cluster
}{running: map[setup]*cluster{}}

func TestMain(m *testing.M) {
	code := m.Run()
	for how, c := range clusters.running {
		if err := c.finish(); err != nil {
			fmt.Fprintf(os.Stderr, "cluster %+v: %v\n", how, err)
			code = 1
		}
	}
	os.Exit(code)
}

// binaries are the programs under test.
func binaries() sandbox.Binaries {
	if dir := os.Getenv("EXEUNT_BIN"); dir != "" {
		return sandbox.Binaries{Dir: dir}
	}
	return sandbox.Binaries{Dir: filepath.Join("..", "..", "bin")}
}

// private returns a cluster of the test's own.
func private(t testing.TB, how setup) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := start(ctx, how)
	if err != nil {
		t.Fatalf("start cluster %+v: %v", how, err)
	}
	t.Cleanup(func() {
		if err := c.finish(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// shared returns the running cluster of that kind.
func shared(t testing.TB, how setup) *cluster {
	t.Helper()
	clusters.Lock()
	defer clusters.Unlock()
	if c := clusters.running[how]; c != nil {
		return c
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := start(ctx, how)
	if err != nil {
		t.Fatalf("start cluster %+v: %v", how, err)
	}
	clusters.running[how] = c
	return c
}
