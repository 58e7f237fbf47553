package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait on a busy machine.
const patience = time.Minute

func TestStartWaitsForReadyLine(t *testing.T) {
	process := startShell(t, `echo noise; echo "it: ready here"; exec sleep 60`)
	if process.ready != "here" {
		t.Errorf("ready line ends with %q, want here", process.ready)
	}
	if log := read(t, process.LogFile()); !strings.Contains(log, "noise\nit: ready here\n") {
		t.Errorf("log = %q, want everything written", log)
	}
}

func TestStopEndsProcessWithSignalHandler(t *testing.T) {
	process := startShell(t, `trap 'echo bye; exit 0' TERM; echo "it: ready"; while :; do sleep 0.01; done`)
	if err := process.Stop(patient(t)); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if log := read(t, process.LogFile()); !strings.HasSuffix(log, "bye\n") {
		t.Errorf("log = %q, want what the program said last", log)
	}
	checkEnded(t, process)
}

func TestStopEndsProcessWithoutSignalHandler(t *testing.T) {
	process := startShell(t, `echo "it: ready"; exec sleep 60`)
	if err := process.Stop(patient(t)); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := process.Stop(patient(t)); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	checkEnded(t, process)
}

func TestStopReportsExitStatus(t *testing.T) {
	process := startShell(t, `trap 'exit 3' TERM; echo "it: ready"; while :; do sleep 0.01; done`)
	if err := process.Stop(patient(t)); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("Stop: %v, want exit status 3", err)
	}
}

func TestStopKillsProcessThatIgnoresSignals(t *testing.T) {
	process := startShell(t, `trap '' TERM; echo "it: ready"; while :; do sleep 0.01; done`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := process.Stop(ctx); err == nil || !strings.Contains(err.Error(), "stop it") {
		t.Errorf("Stop: %v, want that it did not listen", err)
	}
	checkEnded(t, process)
}

func TestKillEndsChildren(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	process := startShell(t, `exec 3>"`+pipe+`"; sleep 60 & echo "it: ready"; wait`)
	if err := errors.Join(process.Kill(), process.Err()); err != nil {
		t.Errorf("kill: %v", err)
	}
	// The pipe is closed when the last process that has it open ends.
	if err := reader.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Errorf("read pipe: %v, want its end", err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

func TestDeathBeforeReadyShowsTheLog(t *testing.T) {
	_, err := Start(patient(t), shell(t, `echo "no such flag" >&2; exit 2`))
	if err == nil {
		t.Fatal("Start succeeded")
	}
	for _, want := range []string{"start it: it ended before it was ready: exit status 2", "no such flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v\nwant %q in it", err, want)
		}
	}
}

func TestStartKillsProcessThatIsNeverReady(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	process, err := Start(ctx, shell(t, `exec sleep 60`))
	if err == nil || !strings.Contains(err.Error(), "it is not ready") {
		t.Errorf("Start: %v, want that it is not ready", err)
	}
	checkEnded(t, process)
}

func TestFailedProcessHasAnError(t *testing.T) {
	process := startShell(t, `echo "it: ready"; exit 4`)
	select {
	case <-process.Done():
	case <-patient(t).Done():
		t.Fatal("the process does not end")
	}
	if err := process.Err(); err == nil || !strings.Contains(err.Error(), "run it: exit status 4") {
		t.Errorf("Err = %v, want exit status 4", err)
	}
}

func TestMissingProgramErrorNamesTheFix(t *testing.T) {
	directory := t.TempDir()
	_, err := Binaries{Dir: directory}.Path("controlplane")
	want := "find controlplane: there is no such program in " + directory + ", run `make build` first"
	if err == nil || err.Error() != want {
		t.Errorf("Path: %v\nwant %s", err, want)
	}
}

func TestProgramIsFoundInItsDirectory(t *testing.T) {
	want := filepath.Join(t.TempDir(), "controlplane")
	if err := os.WriteFile(want, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := (Binaries{Dir: filepath.Dir(want)}).Path("controlplane"); err != nil || got != want {
		t.Errorf("Path = %s, %v, want %s", got, err, want)
	}
}

// shell returns a program called "it" that runs script and says "it: ready".
func shell(t *testing.T, script string) Program {
	t.Helper()
	return Program{
		Name:      "it",
		Path:      "/bin/sh",
		Args:      []string{"-c", script},
		LogFile:   filepath.Join(t.TempDir(), "log"),
		ReadyLine: "it: ready",
	}
}

// startShell runs script until the test ends.
func startShell(t *testing.T, script string) *Process {
	t.Helper()
	process, err := Start(patient(t), shell(t, script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
	})
	return process
}

// checkEnded fails the test if the process runs.
func checkEnded(t *testing.T, process *Process) {
	t.Helper()
	select {
	case <-process.Done():
	default:
		t.Errorf("%s still runs", process.Name())
	}
}

// patient returns a context that ends before go test loses patience.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// read returns the content of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
