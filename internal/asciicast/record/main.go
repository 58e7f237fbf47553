// Command record runs a command and writes its standard output, with colors and times, to a file
// that asciinema plays. It writes no file if the command fails.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/exeunt-io/exeunt/internal/asciicast"
)

func main() {
	out := flag.String("out", "", "`file` to write")
	flag.Parse()
	if err := record(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// record records the command args in the file out.
func record(out string, args []string) error {
	if out == "" || len(args) == 0 {
		return errors.New("name the file and the command: record -out=FILE COMMAND [ARGUMENT]")
	}
	lines, err := capture(args)
	if err != nil {
		return err
	}
	names, err := anonymizer()
	if err != nil {
		return err
	}
	for i := range lines {
		lines[i].Text = names.Replace(lines[i].Text)
	}
	var text bytes.Buffer
	title := strings.Join(append([]string{filepath.Base(args[0])}, args[1:]...), " ")
	if err := asciicast.Write(&text, title, lines); err != nil {
		return err
	}
	if err := os.WriteFile(out, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// capture runs the command with colors until it ends.
func capture(args []string) ([]asciicast.Line, error) {
	// Ctrl-C reaches the command as well, which then stops what it started.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.Stderr = os.Stderr
	command.Env = withColor(os.Environ())
	return asciicast.Capture(command)
}

// withColor returns the environment with colors turned on.
func withColor(environment []string) []string {
	kept := slices.DeleteFunc(environment, func(variable string) bool { return strings.HasPrefix(variable, "NO_COLOR=") })
	return append(kept, "CLICOLOR_FORCE=1")
}

// anonymizer replaces the directories of this machine.
func anonymizer() (*asciicast.Anonymizer, error) {
	working, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, fmt.Errorf("find the home directory: %w", err)
	}
	return asciicast.NewAnonymizer(map[string]string{working: ".", home: "~", os.TempDir(): "/tmp"}), nil
}
