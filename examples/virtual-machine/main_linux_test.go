package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/examples/internal/controller"
	"github.com/exeunt-io/exeunt/examples/internal/guest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == controller.GuestCommand {
		main()
	}
	os.Exit(m.Run())
}

const limit = 30 * time.Second

// booted starts a guest as the controller does, and waits until it runs.
func booted(t *testing.T, spec map[string]any) (process *guest.Process, console string) {
	t.Helper()
	path := t.TempDir()
	dir, err := guest.Open(path)
	must(t, err)
	t.Cleanup(func() { must(t, dir.Close()) })
	must(t, dir.Save(guest.Record{UID: "uid", Key: "default/a"}))
	command, err := kind.Command(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
	must(t, err)
	process, err = dir.Start("uid", command)
	must(t, err)
	t.Cleanup(func() { must(t, process.PowerOff(syscall.SIGKILL)) })
	console = filepath.Join(path, "uid", "console.log")
	awaitLine(t, console, "the guest runs\n")
	return process, console
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// awaitLine waits until the console has the line.
func awaitLine(t *testing.T, console, line string) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for end := time.After(limit); ; {
		text, err := os.ReadFile(console)
		must(t, err)
		if strings.Contains(string(text), line) {
			return
		}
		select {
		case <-ticker.C:
		case <-end:
			t.Fatalf("the console has %q, not %q", text, line)
		}
	}
}

func TestGuestShutsDownWhenAsked(t *testing.T) {
	process, console := booted(t, map[string]any{"guest": map[string]any{"shutdownSeconds": int64(0)}})
	must(t, process.Signal(syscall.SIGTERM))
	select {
	case <-process.Ended():
	case <-time.After(limit):
		t.Fatal("the guest does not shut down")
	}
	awaitLine(t, console, "the guest has shut down\n")
}

func TestGuestThatIgnoresACPIIsPoweredOff(t *testing.T) {
	process, console := booted(t, map[string]any{"guest": map[string]any{"ignoresACPI": true}})
	must(t, process.Signal(syscall.SIGTERM))
	awaitLine(t, console, "the power button was pressed\n")
	select {
	case <-process.Ended():
		t.Fatal("the guest has shut down")
	default:
	}
	must(t, process.PowerOff(kind.PowerOff...))
}

func TestMalformedSpecIsRefused(t *testing.T) {
	for _, spec := range []map[string]any{{"guest": "x"}, {"guest": map[string]any{"shutdownSeconds": "x"}},
		{"guest": map[string]any{"ignoresACPI": "x"}}} {
		if _, err := kind.Command(&unstructured.Unstructured{Object: map[string]any{"spec": spec}}); err == nil {
			t.Errorf("%v: no error", spec)
		}
	}
}
