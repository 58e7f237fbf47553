package scenarios

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/exeunt-io/exeunt/test/node/internal/cluster"
)

func TestMain(m *testing.M) {
	if cluster.RunKubectl() {
		return
	}
	slog.SetLogLoggerLevel(slog.LevelWarn) // the chart has symbolic links on purpose
	m.Run()
}

// start runs a cluster with the programs of one side until the test ends. Its data and logs
// are kept if the test fails.
func start(t *testing.T, side cluster.Side) *cluster.Cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "node-") // the paths of sockets are short
	must(t, err)
	source, err := filepath.Abs("../../..")
	must(t, err)
	c, err := cluster.Start(t.Context(), cluster.Config{Source: source, Binaries: os.Getenv("EXEUNT_BIN"), Dir: dir, Side: side})
	if err != nil {
		t.Fatalf("%v\ndata and logs are in %s", err, dir)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("data and logs are in %s", dir)
			return
		}
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until check returns nil.
func (w *workload) eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	must(t, w.Await(t.Context(), what, check))
}
