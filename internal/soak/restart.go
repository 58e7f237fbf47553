package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// restartPlane kills etcd and kube-apiserver, changes the data by the function, and starts
// them again.
func (w *world) restartPlane(ctx context.Context, change func() error) error {
	w.mu.Lock()
	plane := w.plane
	w.mu.Unlock()
	if err := plane.Kill(); err != nil {
		return err
	}
	if change != nil {
		if err := change(); err != nil {
			return err
		}
	}
	return w.startPlane(ctx)
}

func (w *world) etcdDir() string     { return filepath.Join(w.dir, "data", "etcd") }
func (w *world) snapshotDir() string { return filepath.Join(w.dir, "snapshot") }

// saveEtcd copies the data of etcd, which does not run.
func (w *world) saveEtcd() error { return replaceDir(w.snapshotDir(), w.etcdDir()) }

// loadEtcd replaces the data of etcd, which does not run, with the copy.
func (w *world) loadEtcd() error { return replaceDir(w.etcdDir(), w.snapshotDir()) }

// replaceDir makes the directory to a copy of the directory from.
func replaceDir(to, from string) error {
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		return fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return nil
}
