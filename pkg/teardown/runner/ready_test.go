package runner

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

func TestOnlyCheckWithoutRefusalIsReady(t *testing.T) {
	type check = func(context.Context, *alive.Alive) ([]teardown.Problem, error)
	for name, tc := range map[string]struct {
		check    check
		refusals int
	}{
		"no check": {nil, 1},
		"nothing refuses": {func(context.Context, *alive.Alive) ([]teardown.Problem, error) {
			return []teardown.Problem{{Reason: "Warning"}}, nil
		}, 0},
		"a refusal": {func(context.Context, *alive.Alive) ([]teardown.Problem, error) {
			return []teardown.Problem{{Reason: "ServesOthers", Refuses: true}}, nil
		}, 1},
		"#66 unreadable": {func(context.Context, *alive.Alive) ([]teardown.Problem, error) {
			return nil, errors.New("no answer")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{Runner: New(Config{Check: tc.check})}
			s.check(t.Context(), alive.New(), time.Unix(0, 0))
			if !s.ready.checked || len(s.ready.refusals) != tc.refusals {
				t.Errorf("checked %t, refusals %v, want %d", s.ready.checked, s.ready.refusals, tc.refusals)
			}
		})
	}
}

// The leader election writes to the watchdog without a look whether there is one.
func TestRunnerOfCommandHasWatchdog(t *testing.T) {
	runner := New(Config{Waits: DefaultWaits(), Command: true})
	if runner.Watchdog == nil || runner.Watchdog.Check(nil) != nil {
		t.Error("a runner without health checks cannot lead")
	}
}
