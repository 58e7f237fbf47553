package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// errNodeFlags: a cluster with a node takes fewer flags.
var errNodeFlags = errors.New("--node runs the manifests as they are: leave out --faults and --feature-gates")

// runNode runs a cluster with kubelet and containerd until ctx ends. A clone of the repository
// builds its programs.
func (f sandboxFlags) runNode(ctx context.Context, streams genericiooptions.IOStreams) error {
	if f.faults != "" || len(f.gates) > 0 {
		return errNodeFlags
	}
	binaries := sandbox.Binaries{Dir: f.binDir}
	program, err := binaries.NodePath("sandbox")
	if err != nil {
		return fmt.Errorf("--node needs kubelet and containerd, which a clone of the repository builds: %w", err)
	}
	if err := checkMachine(ctx, filepath.Join(filepath.Dir(program), "node")); err != nil {
		return err
	}
	directory := filepath.Dir(filepath.Dir(program))
	args := []string{"--bin-dir=" + directory, "--source=" + filepath.Dir(directory)}
	if f.keep {
		args = append(args, "--keep")
	}
	return sandbox.RunForeground(ctx, streams.Out, streams.ErrOut, program, args...)
}

// checkMachine returns an error that says why no node can run on this machine.
func checkMachine(ctx context.Context, launcher string) error {
	reason, err := exec.CommandContext(ctx, launcher, "check").Output()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("try a node on this machine: %w", err)
	case len(reason) > 0:
		return fmt.Errorf("no node can run on this machine: %s", strings.TrimSpace(string(reason)))
	}
	return nil
}
