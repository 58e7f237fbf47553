package main

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

var machine = instances.Instance{ProviderID: "aws:///eu-central-1a/i-0abc", Node: "node-0", NodeUID: "uid-0",
	Addresses: []string{"10.0.0.1", "node-0.internal"}}

// script writes an executable shell script and returns its path.
func script(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// running returns a provider that runs the shell script for each call.
func running(t *testing.T, text string) *commands {
	t.Helper()
	command := []string{script(t, t.TempDir(), "command", text)}
	return &commands{get: command, stop: command, remove: command, logger: log.New(io.Discard, "", 0)}
}

func TestCommandHasInstanceInItsEnvironment(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("OUT", out)
	t.Setenv("EXEUNT_NODE", "another")
	provider := running(t, `printf '%s|' "$EXEUNT_PROVIDER_ID" "$EXEUNT_NODE" "$EXEUNT_NODE_UID" \
	"$EXEUNT_ADDRESSES" "$#" > "$OUT"; echo Running`)
	hostile := instances.Instance{ProviderID: "$(touch x)`touch x`; touch x", Node: "'\"\\\n-", NodeUID: "*",
		Addresses: []string{"&", "$HOME"}}
	for i, want := range map[*instances.Instance]string{
		&machine: "aws:///eu-central-1a/i-0abc|node-0|uid-0|10.0.0.1 node-0.internal|0|",
		&hostile: "$(touch x)`touch x`; touch x|'\"\\\n-|*|& $HOME|0|",
		{}:       "||||0|",
	} {
		if state, err := provider.Get(t.Context(), *i); state != instances.Running || err != nil {
			t.Errorf("Get = %s, %v", state, err)
		}
		if got, err := os.ReadFile(out); err != nil || string(got) != want {
			t.Errorf("the command got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := provider.Get(t.Context(), instances.Instance{Node: "a\x00b"}); err == nil {
		t.Error("a value that no variable can have is no error")
	}
}

func TestEachCallRunsItsCommand(t *testing.T) {
	folder := t.TempDir()
	echo := script(t, folder, "echo", `echo "$@"`)
	provider := &commands{get: []string{echo, "Running"}, stop: []string{echo, "now", "Stopping"},
		remove: []string{echo, "Gone"}, logger: log.New(io.Discard, "", 0)}
	for want, call := range map[instances.State]func(context.Context, instances.Instance) (instances.State, error){
		instances.Running: provider.Get, instances.Stopping: provider.Stop, instances.Gone: provider.Delete,
	} {
		if got, err := call(t.Context(), machine); got != want || err != nil {
			t.Errorf("state %s, %v, want %s", got, err, want)
		}
	}
}

func TestExitStatusIsTheAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		text  string
		state instances.State
		want  instances.Error
	}{
		"last word":       {"echo one; echo two Off; echo warning >&2", instances.Off, instances.Error{}},
		"no output":       {"true", "", instances.Error{}},
		"error":           {"echo first >&2; echo ' last ' >&2; echo >&2; exit 1", "", instances.Error{Message: "last"}},
		"state and error": {"echo Off; exit 1", "", instances.Error{Message: "the command ended with exit status 1"}},
		"unsupported": {"echo 'disks would go' >&2; exit 3", "",
			instances.Error{Message: "disks would go", Unsupported: true}},
		"throttled": {"echo slow >&2; exit 75", "", instances.Error{Message: "slow", RetryAfter: 5 * time.Second}},
		"throttled for 9 s": {"echo in 9; echo slow >&2; exit 75", "",
			instances.Error{Message: "slow", RetryAfter: 9 * time.Second}},
		"killed": {"kill -9 $$", "", instances.Error{Message: "the command ended with signal: killed"}},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := running(t, tc.text).Stop(t.Context(), machine)
			var said *instances.Error
			if errors.As(err, &said) != (tc.want != instances.Error{}) || said != nil && *said != tc.want ||
				state != tc.state {
				t.Errorf("state %q, %#v, want %q, %+v", state, err, tc.state, tc.want)
			}
		})
	}
}

func TestAbsentCommandIsUnsupported(t *testing.T) {
	provider := &commands{get: []string{"/absent/command"}}
	for verb, call := range map[string]func(context.Context, instances.Instance) (instances.State, error){
		"stop": provider.Stop, "delete": provider.Delete,
	} {
		_, err := call(t.Context(), machine)
		var said *instances.Error
		if !errors.As(err, &said) || !said.Unsupported || !strings.Contains(said.Message, "--"+verb) {
			t.Errorf("without a command the error of %s is %v", verb, err)
		}
	}
	provider.logger = log.New(io.Discard, "", 0)
	_, err := provider.Get(t.Context(), machine)
	said := (*instances.Error)(nil)
	if err == nil || errors.As(err, &said) || !strings.Contains(err.Error(), "/absent/command") {
		t.Errorf("a command that does not exist is %v", err)
	}
}

func TestEndOfLongOutputCounts(t *testing.T) {
	provider := running(t, "yes Running | head -n 100000; yes | head -n 100000 >&2; echo Off")
	if state, err := provider.Get(t.Context(), machine); state != instances.Off || err != nil {
		t.Errorf("Get = %s, %v", state, err)
	}
	var kept tail
	for range 100 {
		if n, err := kept.Write(make([]byte, 1000)); n != 1000 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if kept.Len() != maxOutput {
		t.Errorf("%d bytes are kept, want %d", kept.Len(), maxOutput)
	}
}

// alive returns a FIFO that the command and its children hold open, and what is closed once all of them have ended.
func alive(t *testing.T) (path string, began, ended <-chan struct{}) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	first, last := make(chan struct{}), make(chan struct{})
	go func() {
		file, err := os.Open(path) // waits for a writer
		if err != nil {
			return
		}
		defer func() { _ = file.Close() }()
		_, _ = io.ReadFull(file, make([]byte, 1))
		close(first)
		_, _ = io.Copy(io.Discard, file)
		close(last)
	}()
	return path, first, last
}

// await fails the test if the channel stays open.
func await(t *testing.T, closed <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
}

func TestCommandIsKilledWithItsChildren(t *testing.T) {
	path, began, ended := alive(t)
	t.Setenv("ALIVE", path)
	provider := running(t, `trap '' TERM INT HUP; exec 9> "$ALIVE"; sleep 1000 & echo >&9; wait`)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { _, err := provider.Stop(ctx, machine); result <- err }()
	await(t, began, "the command")
	cancel()
	await(t, ended, "the end of the command and its children")
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the canceled call returns %v", err)
	}
}

func TestChildThatHoldsTheOutputIsKilled(t *testing.T) {
	path, _, ended := alive(t)
	t.Setenv("ALIVE", path)
	state, err := running(t, `exec 9> "$ALIVE"; echo >&9; sleep 1000 & echo Off`).Get(t.Context(), machine)
	if state != "" || err == nil || !strings.Contains(err.Error(), "holds its output") {
		t.Errorf("Get = %s, %v", state, err)
	}
	await(t, ended, "the end of the child")
}
