package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// kernelSettings are the settings that kubelet writes and that are not the node's own, with
// the values that kubelet wants. The node sees files in their place.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// mount mounts the file systems of the node in its own mount namespace.
func (c Config) mount() error {
	if err := setPropagation("/", unix.MS_REC); err != nil {
		return err
	}
	for _, mount := range []struct{ source, target, kind, options string }{
		{"proc", "/proc", "proc", ""},
		{"sysfs", "/sys", "sysfs", ""},
		{"run", "/run", "tmpfs", "mode=755"},
	} {
		// Without the machine's mounts there, programs find the node's cgroups only.
		if err := unix.Unmount(mount.target, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", mount.target, err)
		}
		if err := unix.Mount(mount.source, mount.target, mount.kind, 0, mount.options); err != nil {
			return fmt.Errorf("mount %s: %w", mount.target, err)
		}
	}
	if err := c.Groups.Mount(); err != nil {
		return err
	}
	for source, target := range map[string]string{"lib": "/var/lib", "log": "/var/log"} {
		if err := bind(filepath.Join(c.Dir, source), target); err != nil {
			return err
		}
		// The new mount is a peer of the root: without this, mounts below it would appear
		// in the node's directory as well.
		if err := setPropagation(target, 0); err != nil {
			return err
		}
	}
	return c.hideKernelSettings()
}

// setPropagation makes a mount private, so that nothing reaches the machine, and then
// shared, so that mounts of the driver's pod reach the node.
func setPropagation(path string, flags uintptr) error {
	for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", path, "", flags|propagation, ""); err != nil {
			return fmt.Errorf("set propagation of %s: %w", path, err)
		}
	}
	return nil
}

// hideKernelSettings binds files over the machine's settings.
func (c Config) hideKernelSettings() error {
	for name, value := range kernelSettings {
		setting := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(setting); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file := c.file(strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return fmt.Errorf("hide %s: %w", setting, err)
		}
		if err := bind(file, setting); err != nil {
			return err
		}
	}
	return nil
}

// mountOverlay mounts an overlay as containerd does for each container.
func (c Config) mountOverlay() error {
	var options []string
	for _, layer := range []string{"lowerdir", "upperdir", "workdir"} {
		dir := filepath.Join(c.Dir, "lib", "containerd", layer)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create layer of an overlay: %w", err)
		}
		options = append(options, layer+"="+dir)
	}
	if err := unix.Mount("overlay", "/var/lib/kubelet", "overlay", 0, strings.Join(options, ",")); err != nil {
		return fmt.Errorf("mount an overlay on files of %s: %w", c.Dir, err)
	}
	return nil
}

// bind mounts a file or directory at another path.
func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}
