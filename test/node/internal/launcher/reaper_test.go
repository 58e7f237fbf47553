package launcher

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// One test, because a reaper takes all children of the process.
func TestReaper(t *testing.T) {
	children := newReaper()
	for script, want := range map[string]error{"exit 0": nil, "exit 3": errStatus} {
		if err := children.run(exec.Command("/bin/sh", "-c", script), time.Minute); !errors.Is(err, want) {
			t.Errorf("run(%s) = %v, want %v", script, err, want)
		}
	}
	err := children.run(exec.Command("/bin/sh", "-c", "exec sleep 600"), 10*time.Millisecond)
	if !errors.Is(err, errRuns) || !strings.Contains(err.Error(), "sleep 600") {
		t.Errorf("run() = %v, want %v and the command", err, errRuns)
	}
}
