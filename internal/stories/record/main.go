// Record runs "exeunt demo --against=upstream", and writes its output into a page and the
// differences of both pairs into the README:
//
//	record -page docs/against-upstream.md -readme README.md bin/exeunt demo --against=upstream
//
// A run that fails writes nothing.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := record(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context) error {
	page := flag.String("page", "", "page that gets the output")
	readme := flag.String("readme", "", "page that gets the differences, between its markers")
	flag.Parse()
	if *page == "" || *readme == "" || flag.NArg() == 0 {
		return errors.New("name the pages and the command: record -page FILE -readme FILE COMMAND")
	}
	where := circumstances(time.Now())
	output, err := run(ctx, flag.Args())
	if err != nil {
		return err
	}
	text, err := render(where, output)
	if err != nil {
		return err
	}
	front, err := os.ReadFile(*readme)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	updated, err := update(string(front), text)
	if err != nil {
		return fmt.Errorf("%s: %w", *readme, err)
	}
	for name, content := range map[string]string{*page: text, *readme: updated} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return fmt.Errorf("write page: %w", err)
		}
	}
	return nil
}

// run runs the command, shows its output, and returns it.
func run(ctx context.Context, args []string) (string, error) {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdout, command.Stderr = io.MultiWriter(os.Stdout, &output), os.Stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute // the command stops its programs
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w", strings.Join(args, " "), err)
	}
	return output.String(), nil
}

// circumstances says when and on what machine the run began, and how busy the machine was.
func circumstances(now time.Time) string {
	text := fmt.Sprintf("%s, %s/%s, %d CPUs", now.UTC().Format("2006-01-02 15:04 UTC"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	load, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(load)); err == nil && len(fields) > 0 {
		text += ", load average " + fields[0] + " at its start"
	}
	return text
}
