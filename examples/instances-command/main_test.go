package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// directory returns a folder with a short path: that of a socket has 107 bytes at most.
func directory(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

// started runs the program until the returned function is called, which returns its log.
func started(t *testing.T, args ...string) (end func() string) {
	t.Helper()
	var written bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, args, writer, log.New(&written, "", 0))
		_ = writer.CloseWithError(err)
		ended <- err
	}()
	if line, err := bufio.NewReader(reader).ReadString('\n'); err != nil || line != "instances-command: ready\n" {
		t.Fatalf("the program prints %q, %v", line, err)
	}
	return func() string {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the program ends with %v", err)
		}
		return written.String()
	}
}

func TestProgramAnswersNodeTerminator(t *testing.T) {
	folder := directory(t)
	socket := filepath.Join(folder, "i.sock")
	command := script(t, folder, "power", `case $1 in
	get) echo Running;; stop) echo Stopping;; *) echo "no $1" >&2; exit 3;; esac`)
	end := started(t, "--socket="+socket, "--get="+command+" get", "--stop", command+"  stop",
		"--delete="+command+" delete")
	client, err := instances.Open(socket)
	if err != nil {
		t.Fatal(err)
	}
	if state, err := client.Get(t.Context(), machine); state != instances.Running || err != nil {
		t.Errorf("Get = %s, %v", state, err)
	}
	if state, err := client.Stop(t.Context(), machine); state != instances.Stopping || err != nil {
		t.Errorf("Stop = %s, %v", state, err)
	}
	_, err = client.Delete(t.Context(), machine)
	if said := (*instances.Error)(nil); !errors.As(err, &said) || !said.Unsupported || said.Message != "no delete" {
		t.Errorf("Delete: %v", err)
	}
	written := end()
	for _, want := range []string{`get "aws:///eu-central-1a/i-0abc" of node "node-0": "Running" after`, `"Stopping"`,
		`"no delete"`} {
		if !strings.Contains(written, want) {
			t.Errorf("the log lacks %q:\n%s", want, written)
		}
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestSignalEndsCommandsAndProgram(t *testing.T) {
	folder := directory(t)
	socket := filepath.Join(folder, "i.sock")
	path, began, ended := alive(t)
	t.Setenv("ALIVE", path)
	end := started(t, "--socket="+socket, "--get="+script(t, folder, "hang", `exec 9> "$ALIVE"; echo >&9; sleep 1000`))
	client, err := instances.Open(socket)
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() { _, err := client.Get(t.Context(), machine); result <- err }()
	await(t, began, "the command")
	end()
	await(t, ended, "the end of the command")
	if err := <-result; err == nil || !strings.Contains(err.Error(), "killed with its call") {
		t.Errorf("the call returns %v", err)
	}
}

func TestWrongFlagIsOneSentence(t *testing.T) {
	for want, args := range map[string][]string{
		"--socket and --get are required": {"--socket=/run/i.sock"},
		"are required, see --help":        {"--get=power"},
		"unknown argument \"stop\"":       {"--socket=/run/i.sock", "--get=power", "stop"},
		"not defined: -start, see --help": {"--start=power"},
		"no such file or directory":       {"--socket=/absent/i.sock", "--get=power"},
	} {
		err := run(t.Context(), args, io.Discard, log.New(io.Discard, "", 0))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"--help"}, &help, nil); err != nil || !strings.Contains(help.String(), "-delete") {
		t.Errorf("--help prints %q, %v", help.String(), err)
	}
}
