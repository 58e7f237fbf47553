package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
)

// The programs of a sandbox.
const (
	controlPlaneProgram = "controlplane"
	pvControllerProgram = "pv-controller"
	provisionerProgram  = "provisioner"
	driverProgram       = "csimock"
)

// Binaries locates the built programs.
type Binaries struct {
	// Dir has the programs. Empty means the directory of the running executable.
	Dir string
}

// Path returns the absolute path of the program called name.
func (b Binaries) Path(name string) (string, error) { return b.find("", name, "make build") }

// UpstreamPath returns the absolute path of upstream's program called name.
func (b Binaries) UpstreamPath(name string) (string, error) {
	return b.find("upstream", name, "make build-upstream")
}

// NodePath returns the absolute path of a program for a cluster with a real node.
func (b Binaries) NodePath(name string) (string, error) { return b.find("node", name, "make node") }

// CheckUpstream returns an error if one of upstream's programs is missing.
func (b Binaries) CheckUpstream() error {
	for _, name := range []string{upstreamLoops, upstreamSidecar} {
		if _, err := b.UpstreamPath(name); err != nil {
			return err
		}
	}
	return nil
}

// find returns the absolute path of a program in a folder of the directory. The error names
// the command that builds the program.
func (b Binaries) find(folder, name, build string) (string, error) {
	directory, err := b.directory()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	path := filepath.Join(directory, folder, name)
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("find %s: there is no such program in %s, run `%s` first", name, filepath.Dir(path), build)
	}
	return path, nil
}

// directory returns the absolute path of the directory with the programs.
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
