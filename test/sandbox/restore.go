package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Restart kills etcd and kube-apiserver, calls change, and starts them again. The URL stays the same.
func (c *ControlPlane) Restart(ctx context.Context, change func() error) error {
	if err := c.Kill(); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	url := c.URL
	if err := c.startServer(ctx); err != nil {
		return err
	}
	if c.URL != url {
		return fmt.Errorf("the API server moved from %s to %s", url, c.URL)
	}
	return nil
}

// SaveEtcd copies the data of an etcd that does not run to the directory, which is replaced.
func (c *ControlPlane) SaveEtcd(to string) error { return replaceDir(to, c.etcdDir()) }

// RestoreEtcd replaces the data of an etcd that does not run by the copy. It raises the revision by the number and marks
// what was before as compacted, as "etcdutl snapshot restore --bump-revision --mark-compacted" does; 0 keeps the revision.
func (c *ControlPlane) RestoreEtcd(ctx context.Context, from string, bump uint64) error {
	if bump == 0 {
		return replaceDir(c.etcdDir(), from)
	}
	restore := exec.CommandContext(ctx, c.program, "restore", "--data-dir="+c.dataDir(), "--from="+from, "--bump-revision="+strconv.FormatUint(bump, 10))
	if output, err := restore.CombinedOutput(); err != nil {
		return fmt.Errorf("restore etcd: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

func (c *ControlPlane) etcdDir() string { return filepath.Join(c.dataDir(), "etcd") }

// replaceDir makes the directory to a copy of the directory from.
func replaceDir(to, from string) error {
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		return fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return nil
}
