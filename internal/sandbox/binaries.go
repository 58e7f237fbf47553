package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
)

// The programs that a sandbox is made of.
const (
	controlPlaneProgram = "controlplane"
	pvControllerProgram = "pv-controller"
	provisionerProgram  = "provisioner"
	driverProgram       = "csimock"
)

// Binaries is where the built programs are.
type Binaries struct {
	// Dir is the directory that holds them. Empty means the one that the
	// running executable is in.
	Dir string
}

// Path returns the absolute path of the program called name.
func (b Binaries) Path(name string) (string, error) {
	directory, err := b.directory()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	path := filepath.Join(directory, name)
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("find %s: there is no such program in %s, run `make build` first", name, directory)
	}
	return path, nil
}

// directory returns the absolute path of where the programs are.
func (b Binaries) directory() (string, error) {
	if b.Dir != "" {
		return filepath.Abs(b.Dir)
	}
	executable, err := os.Executable()
	if err != nil {
		return "", err
	}
	executable, err = filepath.EvalSymlinks(executable)
	return filepath.Dir(executable), err
}
