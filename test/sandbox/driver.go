package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// DriverConfig configures a mock CSI driver.
type DriverConfig struct {
	// Binaries locates the program.
	Binaries Binaries
	// Dir has the log, the call log and the volumes. A driver with the same name on the
	// same directory has the same volumes. Dir must exist.
	Dir string
	// Name is the driver's name. Empty means csimock.DefaultName.
	Name string
	// Args are further flags.
	Args []string
}

// Driver is a running mock CSI driver.
type Driver struct {
	*Process
	// DriverName is the name in classes and volumes.
	DriverName string
	// Socket is the path of the CSI socket.
	Socket string
	// CallLog is a file with a JSON line for every finished call.
	CallLog string

	socketDir string
}

// StartDriver starts a mock CSI driver and returns once it serves.
func StartDriver(ctx context.Context, config DriverConfig) (*Driver, error) {
	path, err := config.Binaries.Path(driverProgram)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(config.Name, csimock.DefaultName)
	// The path of a socket has at most 107 bytes, and Dir may be long.
	socketDir, err := os.MkdirTemp("", "csi-")
	if err != nil {
		return nil, fmt.Errorf("make directory for the CSI socket: %w", err)
	}
	driver := &Driver{
		DriverName: name,
		Socket:     filepath.Join(socketDir, "csi.sock"),
		CallLog:    filepath.Join(config.Dir, fileName(name)+".calls"),
		socketDir:  socketDir,
	}
	driver.Process, err = Start(ctx, Program{
		Name:      driverProgram,
		Path:      path,
		Args:      driver.args(config),
		LogFile:   filepath.Join(config.Dir, fileName(name)+".log"),
		ReadyLine: "csimock: driver ",
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(socketDir))
	}
	return driver, nil
}

// args returns the flags of the program.
func (d *Driver) args(config DriverConfig) []string {
	return append([]string{
		"--endpoint=" + d.Socket,
		"--driver-name=" + d.DriverName,
		"--state-file=" + filepath.Join(config.Dir, fileName(d.DriverName)+".volumes"),
		"--call-log=" + d.CallLog,
	}, config.Args...)
}

// Stop ends the driver and removes its socket.
func (d *Driver) Stop(ctx context.Context) error {
	return errors.Join(d.Process.Stop(ctx), os.RemoveAll(d.socketDir))
}
