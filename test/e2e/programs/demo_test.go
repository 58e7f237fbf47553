package programs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// demo returns the command of the demo, with its own temporary directory.
func demo(t *testing.T, temporary string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := harness.Binaries().Path("sandbox")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*harness.Timeout)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, path, append([]string{"demo"}, args...)...)
	command.Env = append(os.Environ(), "TMPDIR="+temporary)
	return command
}

func TestDemoShowsLeakAndRepair(t *testing.T) {
	t.Parallel()
	temporary := shortTemp(t)
	output, err := demo(t, temporary, "-o", "json").Output()
	if err != nil {
		t.Fatalf("the demo failed: %v\n%s", err, output)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	var summary struct {
		AsExpected bool `json:"asExpected"`
		Runs       []struct {
			VolumesLeft int `json:"volumesLeft"`
		} `json:"runs"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &summary); err != nil {
		t.Fatalf("the last line is not the summary: %v", err)
	}
	if !summary.AsExpected || len(summary.Runs) != 2 || summary.Runs[0].VolumesLeft != 0 ||
		summary.Runs[1].VolumesLeft != 1 {
		t.Errorf("summary: %+v, want 0 volumes left and then 1", summary)
	}
	expectNoLineTwice(t, lines[:len(lines)-1])
	expectEmpty(t, temporary)
}

// expectNoLineTwice checks the printed lines of each run. The UIDs in names differ between
// runs.
func expectNoLineTwice(t *testing.T, lines []string) {
	t.Helper()
	printed := map[string]bool{}
	for _, line := range lines {
		var event struct {
			Kind, Who, What string
			Gate, Told      bool
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprint(event.Gate, event.Who, event.What)
		if printed[key] && !event.Told {
			t.Errorf("printed twice: %s %s", event.Who, event.What)
		}
		printed[key] = printed[key] || !event.Told
		if event.Kind == "write" && strings.HasPrefix(event.What, "changes ") {
			t.Errorf("a write is not in plain words: %s", event.What)
		}
	}
}

func TestInterruptedDemoLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	temporary := shortTemp(t)
	command := demo(t, temporary, "-o", "json")
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if !lines.Scan() {
		t.Fatalf("the demo printed nothing: %v", command.Wait())
	}
	if err := command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, output); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("the demo ended with %v, want exit status 130", err)
	}
	expectEmpty(t, temporary)
}

func TestInterruptionWhileStartingIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"demo": {"demo"}, "sandbox": nil} {
		t.Run(name, func(t *testing.T) {
			temporary := shortTemp(t)
			command := demo(t, temporary)
			command.Args = append(command.Args[:1], args...)
			progress, err := command.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			said := make([]byte, len("starting etcd"))
			if _, err := io.ReadFull(progress, said); err != nil || string(said) != "starting etcd" {
				t.Fatalf("it began with %q, %v", said, err)
			}
			if err := command.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(progress)
			if err != nil {
				t.Fatal(err)
			}
			want := " and kube-apiserver ... stopped\nsandbox: ended by signal \"interrupt\", all started programs are stopped\n"
			if string(rest) != want {
				t.Errorf("it said %q, want %q", rest, want)
			}
			var exit *exec.ExitError
			if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
				t.Errorf("it ended with %v, want exit status 130", err)
			}
			expectEmpty(t, temporary)
		})
	}
}

// shortTemp returns a directory with a path short enough for sockets.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// expectEmpty checks that the directory is empty and that no process uses it.
func expectEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("%s is not empty: %v (%v)", dir, entries, err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range processes {
		line, err := os.ReadFile(process)
		if err == nil && strings.Contains(string(line), dir) {
			t.Errorf("still running: %s", strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
}
