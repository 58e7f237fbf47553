package terminal

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
)

func TestExitStatusNamesTheSignal(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"well":            {nil, 0},
		"with an error":   {errors.New("broken"), 1},
		"by Ctrl-C":       {SignalError{Signal: syscall.SIGINT}, 130},
		"by kill":         {fmt.Errorf("wait: %w", SignalError{Signal: syscall.SIGTERM}), 143},
		"with a refusal":  {fmt.Errorf("adopt: %w", ExitError{Code: 4, Err: errors.New("the volume is attached")}), 4},
		"and not cleanly": {errors.Join(SignalError{Signal: syscall.SIGINT}, errors.New("stop driver")), 130},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ExitStatus(tc.err); got != tc.want {
				t.Errorf("exit status = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestSignalsEndTheContextOnce(t *testing.T) {
	ctx, stop := SignalContext(t.Context())
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	var signalled SignalError
	if !errors.As(context.Cause(ctx), &signalled) || signalled.Signal != syscall.SIGTERM {
		t.Errorf("cause = %v, want the signal", context.Cause(ctx))
	}
}
