package main

import (
	"context"
	"path/filepath"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// raised is by how much a restore raises the revision of etcd, as upstream recommends.
const raised = 1_000_000_000

// restartPlane kills etcd and kube-apiserver, changes the data by the function, and starts
// them again.
func (w *world) restartPlane(ctx context.Context, change func(*sandbox.ControlPlane) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return w.plane.Restart(ctx, func() error {
		if change == nil {
			return nil
		}
		return change(w.plane)
	})
}

func (w *world) snapshotDir() string { return filepath.Join(w.dir, "snapshot") }

// saveEtcd copies the data of etcd, which does not run.
func (w *world) saveEtcd(plane *sandbox.ControlPlane) error { return plane.SaveEtcd(w.snapshotDir()) }

// loadEtcd returns the function that replaces the data of etcd, which does not run, with the copy.
func (w *world) loadEtcd(ctx context.Context, revision Revision) func(*sandbox.ControlPlane) error {
	bump := uint64(0)
	if revision == RaisedRevision {
		bump = raised
	}
	return func(plane *sandbox.ControlPlane) error { return plane.RestoreEtcd(ctx, w.snapshotDir(), bump) }
}
