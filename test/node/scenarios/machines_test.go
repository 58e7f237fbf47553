package scenarios

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/test/node/internal/cluster"
)

// machine is the machine of a node: the process that started kubelet and containerd.
type machine struct {
	*cluster.Node
	// look is called before and after the machine is turned off by Stop.
	look func(context.Context)

	mu    sync.Mutex
	state instances.State
	// called is when Stop was called first, off when no process of the machine was left.
	called, off time.Time
}

// turnOff ends the machine, unless it has ended.
func (m *machine) turnOff(ctx context.Context, state instances.State) (instances.State, error) {
	if m.off.IsZero() {
		if err := m.PowerOff(ctx); err != nil {
			return "", err
		}
		m.off = time.Now()
	}
	m.state = state
	return m.state, nil
}

func (m *machine) stop(ctx context.Context) (instances.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.off.IsZero() {
		return m.state, nil
	}
	m.called = time.Now()
	m.look(ctx)
	state, err := m.turnOff(ctx, instances.Off)
	m.look(ctx)
	return state, err
}

func (m *machine) delete(ctx context.Context) (instances.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turnOff(ctx, instances.Gone)
}

func (m *machine) get() instances.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// times returns when Stop was called first and when the machine was off; zero times if neither has happened.
func (m *machine) times() (called, off time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.called, m.off
}

// machines is the provider of node-terminator. The machines are known by their providerID.
type machines struct{ all sync.Map }

var _ instances.Provider = (*machines)(nil)

func (a *machines) Get(_ context.Context, i instances.Instance) (instances.State, error) {
	m, known := a.find(i)
	if !known {
		return instances.Gone, nil
	}
	return m.get(), nil
}

func (a *machines) Stop(ctx context.Context, i instances.Instance) (instances.State, error) {
	m, known := a.find(i)
	if !known {
		return instances.Gone, nil
	}
	return m.stop(ctx)
}

func (a *machines) Delete(ctx context.Context, i instances.Instance) (instances.State, error) {
	m, known := a.find(i)
	if !known {
		return instances.Gone, nil
	}
	return m.delete(ctx)
}

func (a *machines) find(i instances.Instance) (*machine, bool) {
	found, known := a.all.Load(i.ProviderID)
	if !known {
		return nil, false
	}
	return found.(*machine), true
}

// serve serves the provider on a socket until the test ends.
func (a *machines) serve(t *testing.T, dir string) (socket string) {
	t.Helper()
	socket = filepath.Join(dir, "instances")
	listener, err := instances.Listen(socket)
	must(t, err)
	server := &http.Server{Handler: instances.Handler(a), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return socket
}
