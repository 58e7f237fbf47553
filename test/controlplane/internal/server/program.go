package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/datadir"
)

const (
	// programLog is the file in the data directory for the output of a kube-apiserver that is a program of its own.
	programLog = "kube-apiserver.log"
	// lastLines is how many lines of the log an error quotes.
	lastLines = 10
)

// prepareProgram returns a function that runs the program with the flags, and the address that it serves on. The
// program gets a port instead of an open listener: another process can take the port in between.
func prepareProgram(config Config, flags []string) (serve, string, error) {
	program, err := filepath.Abs(config.Program) // a name without a folder would be looked for in PATH
	if err != nil {
		return nil, "", fmt.Errorf("find kube-apiserver: %w", err)
	}
	if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("find kube-apiserver: %w", cmp.Or(err, fmt.Errorf("%s is no file", program)))
	}
	listener, err := config.Dir.Listen()
	if err != nil {
		return nil, "", err
	}
	address := listener.Addr().String()
	host, port, err := net.SplitHostPort(address)
	if err := errors.Join(err, listener.Close()); err != nil {
		return nil, "", fmt.Errorf("choose the port of kube-apiserver: %w", err)
	}
	flags = append(flags, "--bind-address="+host, "--secure-port="+port)
	return func(ctx context.Context, etcd string) error {
		return runProgram(ctx, config.Dir, program, append(flags, "--etcd-servers="+etcd))
	}, address, nil
}

// runProgram runs kube-apiserver until ctx ends and the program has ended. It is killed if it does not end in time.
func runProgram(ctx context.Context, directory datadir.Dir, program string, flags []string) (err error) {
	path := directory.File(programLog)
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("open log of kube-apiserver: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	command := exec.CommandContext(ctx, program, flags...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = endWithParent()
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopTimeout
	if err := command.Run(); ctx.Err() == nil {
		return fmt.Errorf("run %s: %w; the end of %s:\n%s", program, cmp.Or(err, errEnded), path, tail(path))
	}
	return nil
}

// tail returns the last lines of a log.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-lastLines):], "\n")
}
