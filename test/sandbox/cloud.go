package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
)

const cloudProgram = "cloudmock"

// Cloud is a running cloud: machines that are simulated nodes. See test/cloudmock/machines.
type Cloud struct {
	*Process
	// Socket is that of the machines.
	Socket string

	dir string
}

// StartCloud starts a cloud with this number of machines, and returns once all have registered their Nodes. Leases last
// 4 s unless flags of cloudmock say otherwise. A cluster has one cloud.
func (c *Cluster) StartCloud(ctx context.Context, nodes int, flags ...string) (*Cloud, error) {
	path, err := c.config.Binaries.Path(cloudProgram)
	if err != nil {
		return nil, err
	}
	cloud := &Cloud{dir: c.Dir}
	cloud.Socket = cloud.file("socket")
	cloud.Process, err = c.Run(ctx, Program{
		Path: path, LogFile: filepath.Join(c.Dir, "cloudmock.log"), ReadyLine: "cloudmock: ready ",
		Args: append([]string{
			"--kubeconfig=" + c.Plane.AdminKubeconfig, "--socket=" + cloud.Socket, "--log=" + cloud.EventLog(),
			"--faults=" + cloud.file("faults"), fmt.Sprintf("--nodes=%d", nodes), "--lease-duration=4s",
		}, flags...),
	})
	return cloud, err
}

// StartNodeLoops starts kube-controller-manager with all its loops. Nodes that are silent for 10 s are not ready,
// unless flags say otherwise.
func (c *Cluster) StartNodeLoops(ctx context.Context, flags ...string) (*Process, error) {
	return c.startManager(ctx, "*", append([]string{"--node-monitor-grace-period=10s", "--node-monitor-period=1s"},
		flags...)...)
}

// startManager starts kube-controller-manager with these loops, and without a limit of its requests.
func (c *Cluster) startManager(ctx context.Context, loops string, flags ...string) (*Process, error) {
	process, err := c.Plane.StartControllerManager(ctx, loops, Controller{
		Args: append([]string{"--secure-port=0", noQPS, noBurst}, flags...)})
	if err == nil { // after SIGTERM its exit status is 1
		c.add(process, func(context.Context) error { return process.Kill() })
	}
	return process, err
}

// StartNodeTerminator starts node-terminator. Its manifests are applied.
func (c *Cluster) StartNodeTerminator(ctx context.Context, controller Controller) (*Process, error) {
	process, err := c.Plane.StartNodeTerminator(ctx, controller)
	return c.keep(process, err)
}

func (c *Cloud) file(name string) string { return filepath.Join(c.dir, "cloud."+name) }

// EventLog returns the file with the events.
func (c *Cloud) EventLog() string { return c.file("events") }

// SetFaults replaces all faults, and returns once they are in force.
func (c *Cloud) SetFaults(ctx context.Context, faults ...machines.Fault) error {
	text, err := json.Marshal(faults)
	if err == nil {
		err = os.WriteFile(c.file("new"), text, 0o600)
	}
	if err == nil {
		err = os.Rename(c.file("new"), c.file("faults"))
	}
	if err == nil {
		err = c.awaitFaults(ctx, text)
	}
	if err != nil {
		return fmt.Errorf("replace faults of the machines: %w", err)
	}
	return nil
}

// awaitFaults waits until the machines have the faults.
func (c *Cloud) awaitFaults(ctx context.Context, text []byte) error {
	for ctx.Err() == nil {
		if taken, err := os.ReadFile(machines.FaultsTaken(c.file("faults"))); err == nil && bytes.Equal(taken, text) {
			return nil
		}
		Pause(ctx, 10*time.Millisecond)
	}
	return ctx.Err()
}

// Events returns what has happened so far.
func (c *Cloud) Events() ([]machines.Event, error) {
	events, err := machines.ReadLog(c.EventLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return events, err
}
