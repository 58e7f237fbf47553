// Package launcher runs containerd and kubelet in namespaces of their own.
//
// Start runs on the machine: it creates the cgroups, starts the node's first process in
// new namespaces, and forwards the node's connections to the API server. Init is this first
// process: it mounts the file systems, configures the loopback interface, and runs
// containerd and kubelet. Whatever the node starts ends with it.
package launcher

import (
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
	"time"

	"github.com/exeunt-io/exeunt/test/node/internal/cgroup"
)

const (
	// InitCommand is the command of the first process.
	InitCommand = "init"
	// KubeletHeld is a file in the node's directory: while it exists, a kubelet that ended is not started again.
	KubeletHeld = "kubelet.held"
	// socketName is the socket in the node's directory that leads to the API server.
	socketName = "api"
	// tryPatience bounds Try.
	tryPatience = 30 * time.Second
	// namespaces are those that the node does not share with the machine.
	namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP
)

// Config describes a node.
type Config struct {
	// Name is the name of the Node object.
	Name string
	// Dir is the directory with the node's data and logs.
	Dir string
	// Programs is the directory with kubelet, containerd, runc and the network plugins.
	Programs string
	// Kubeconfig is the kubelet's, Server the loopback address of the API server in it.
	Kubeconfig, Server string
	// Images are archives that are imported before kubelet starts. Pause is the name of the
	// image of pod sandboxes.
	Images []string
	Pause  string
	// ProviderID is that of the Node object, LeaseSeconds the duration of its Lease.
	ProviderID   string
	LeaseSeconds int
	// Groups are the node's cgroups.
	Groups cgroup.Groups
	// Trial: the node ends when all is mounted, and runs no programs.
	Trial bool
}

// hidden are the directories that the node sees from its own directory, or empty.
var hidden = []string{"/proc", "/sys", "/run", "/var/run", "/var/lib", "/var/log"}

// check returns an error if the node cannot run with the configuration.
func (c Config) check() error {
	for _, dir := range hidden {
		if c.Dir == dir || strings.HasPrefix(c.Dir, dir+"/") {
			return fmt.Errorf("the node cannot see its directory %s, choose one that is not in %s", c.Dir, dir)
		}
	}
	for _, program := range []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		if _, err := os.Stat(filepath.Join(c.Programs, program)); err != nil {
			return fmt.Errorf("find programs of the node, run `make node` first: %w", err)
		}
	}
	return nil
}

// Start runs a node until ctx ends.
func Start(ctx context.Context, config Config) error {
	if err := config.check(); err != nil {
		return err
	}
	if err := config.makeDirs(); err != nil {
		return err
	}
	relay, err := listen("unix", filepath.Join(config.Dir, socketName), "tcp", config.Server)
	if err != nil {
		return err
	}
	defer relay.close()
	go relay.serve()
	return runNode(ctx, config, os.Stderr)
}

// Try returns an error that says why no node can run on this machine, or nil. It starts a
// node without programs, whose directory is dir.
func Try(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	config := Config{Name: "trial", Dir: dir, Trial: true}
	if err := config.makeDirs(); err != nil {
		return err
	}
	var reason strings.Builder
	err := runNode(ctx, config, &reason)
	if ctx.Err() != nil {
		return fmt.Errorf("the first process of a node did not end within %s", tryPatience)
	}
	if err != nil && reason.Len() > 0 {
		return errors.New(strings.TrimSpace(reason.String()))
	}
	return err
}

// makeDirs creates the directories of the node.
func (c Config) makeDirs() error {
	for _, dir := range []string{"lib/kubelet", "lib/containerd", "lib/cni", "log", "etc"} {
		if err := os.MkdirAll(filepath.Join(c.Dir, dir), 0o755); err != nil {
			return fmt.Errorf("create directory of the node: %w", err)
		}
	}
	return nil
}

// runNode runs the first process of a node in cgroups of the node.
func runNode(ctx context.Context, config Config, log io.Writer) (err error) {
	if config.Groups, err = cgroup.Find(fmt.Sprintf("exeunt-node-%d", os.Getpid())); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, config.Groups.Remove()) }()
	if err := config.Groups.Create(); err != nil {
		return err
	}
	return runInit(ctx, config, log)
}

// runInit starts the first process in the node's cgroups and namespaces and waits for its
// end. Cgroups are those of the parent at the start, so this process enters them for a
// moment.
func runInit(ctx context.Context, config Config, log io.Writer) error {
	text, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	command := exec.CommandContext(ctx, "/proc/self/exe", InitCommand)
	command.Stdout, command.Stderr = os.Stdout, log
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	input, err := command.StdinPipe()
	if err != nil {
		return fmt.Errorf("start node: %w", err)
	}
	if err := config.Groups.Enter(os.Getpid()); err != nil {
		return errors.Join(err, config.Groups.Leave(os.Getpid()))
	}
	startErr := command.Start()
	if err := errors.Join(startErr, config.Groups.Leave(os.Getpid())); err != nil {
		return fmt.Errorf("start node: %w", err)
	}
	// The process reads its configuration only now, when its cgroup has no other process.
	_, writeErr := input.Write(text)
	writeErr = errors.Join(writeErr, input.Close())
	err = command.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, writeErr)
}
