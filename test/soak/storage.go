package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// diskSize is the size of every volume in bytes.
const diskSize = 1 << 20

// disks is the storage system: a CSI driver in a process of its own, which keeps its volumes
// when it is restarted with other faults.
type disks struct {
	binaries sandbox.Binaries
	dir      string
	driver   sandbox.Driver
	calls    csi.ControllerClient
	close    func() error

	mu      sync.Mutex
	process *sandbox.Process
	faults  []csimock.Fault
	// created has the names of the disks that users create in the storage system, deleted
	// the handles of those that they delete there.
	created, deleted map[string]bool
}

// startDisks starts the storage system below dir, without faults.
func startDisks(ctx context.Context, binaries sandbox.Binaries, dir string) (*disks, error) {
	socketDir, err := os.MkdirTemp("", "csi-") // the path of a socket is short
	if err != nil {
		return nil, fmt.Errorf("make directory of the CSI socket: %w", err)
	}
	d := &disks{
		binaries: binaries, dir: dir, created: map[string]bool{}, deleted: map[string]bool{},
		driver: sandbox.Driver{DriverName: csimock.DefaultName, Socket: filepath.Join(socketDir, "csi.sock"),
			CallLog: filepath.Join(dir, "csimock.calls")},
	}
	connection, err := grpc.NewClient("unix://"+d.driver.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make CSI client: %w", err), os.RemoveAll(socketDir))
	}
	d.calls = csi.NewControllerClient(connection)
	d.close = func() error { return errors.Join(connection.Close(), os.RemoveAll(socketDir)) }
	if err := d.restart(ctx, nil); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// restart starts the driver with the faults, and stops the earlier process. Every call
// that had an effect is in the call log then.
func (d *disks) restart(ctx context.Context, faults []csimock.Fault) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil {
		if err := d.process.Stop(ctx); err != nil {
			return fmt.Errorf("stop driver: %w", err)
		}
	}
	path, err := d.binaries.Path("csimock")
	if err != nil {
		return err
	}
	args := []string{"--endpoint=" + d.driver.Socket, "--driver-name=" + d.driver.DriverName,
		"--state-file=" + d.stateFile(), "--call-log=" + d.driver.CallLog}
	if len(faults) > 0 {
		file := filepath.Join(d.dir, "faults.yaml")
		if err := writeFaults(file, faults); err != nil {
			return err
		}
		args = append(args, "--faults="+file)
	}
	d.faults = faults
	d.process, err = sandbox.Start(ctx, sandbox.Program{Name: "csimock", Path: path, Args: args,
		LogFile: filepath.Join(d.dir, "csimock.log"), ReadyLine: "csimock: driver "})
	return err
}

// stop ends the storage system.
func (d *disks) stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return d.close()
	}
	return errors.Join(d.process.Stop(ctx), d.close())
}

func (d *disks) stateFile() string { return filepath.Join(d.dir, "csimock.volumes") }

// writeFaults writes a file for csimock --faults.
func writeFaults(file string, faults []csimock.Fault) error {
	entries := make([]map[string]any, 0, len(faults))
	for _, f := range faults {
		entry := map[string]any{"method": f.Method, "volume": f.Volume, "every": f.Every, "hang": f.Hang,
			"disconnect": f.Disconnect, "after": f.After}
		if f.Code != 0 {
			entry["code"] = f.Code.String()
		}
		if f.Latency > 0 {
			entry["latency"] = f.Latency.String()
		}
		if f.Response != "" {
			entry["response"] = f.Response
		}
		entries = append(entries, entry)
	}
	text, err := yaml.Marshal(entries)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write faults: %w", err)
	}
	return nil
}

// stored returns the names of all disks by handle.
func (d *disks) stored() (map[string]string, error) {
	names := map[string]string{}
	text, err := os.ReadFile(d.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return names, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state of the driver: %w", err)
	}
	var state struct {
		Volumes []struct{ ID, Name string }
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return nil, fmt.Errorf("read state of the driver: %w", err)
	}
	for _, volume := range state.Volumes {
		names[volume.ID] = volume.Name
	}
	return names, nil
}

// has reports whether the disk exists.
func (d *disks) has(handle string) (bool, error) {
	names, err := d.stored()
	_, found := names[handle]
	return found, err
}

// create creates a disk as an administrator does, and returns its handle.
func (d *disks) create(ctx context.Context, name string) (string, error) {
	d.mu.Lock()
	d.created[name] = true
	d.mu.Unlock()
	response, err := d.calls.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name:          name,
		CapacityRange: &csi.CapacityRange{RequiredBytes: diskSize},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	})
	if err != nil {
		return "", fmt.Errorf("create disk: %w", err)
	}
	if response.GetVolume().GetVolumeId() == "" {
		return "", errors.New("create disk: the response has no handle")
	}
	return response.GetVolume().GetVolumeId(), nil
}

// remove deletes a disk as an administrator does.
func (d *disks) remove(ctx context.Context, handle string) error {
	d.mu.Lock()
	d.deleted[handle] = true
	d.mu.Unlock()
	if _, err := d.calls.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: handle}); err != nil {
		return fmt.Errorf("delete disk: %w", err)
	}
	return nil
}

// removedByUser reports whether a user deletes or has deleted the disk.
func (d *disks) removedByUser(handle string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.deleted[handle]
}

// isOfUser reports whether a user, and no program, makes the call.
func (d *disks) isOfUser(call csimock.Call) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return call.Method == "CreateVolume" && d.created[call.Name] || call.Method == "DeleteVolume" && d.deleted[call.Volume]
}
