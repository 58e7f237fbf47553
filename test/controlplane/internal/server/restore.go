package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/datadir"
)

// Restore replaces the data of etcd, which does not run, by a copy of an etcd directory, as "etcdutl snapshot
// restore --bump-revision --mark-compacted" does: objects are as in the copy, and each later
// version is higher than all before by at least the number.
func Restore(ctx context.Context, directory datadir.Dir, from string, bump uint64) (err error) {
	restored, replayed := directory.File("etcd"), datadir.Dir(directory.File("replayed"))
	defer func() { err = errors.Join(err, os.RemoveAll(string(replayed))) }()
	if err := errors.Join(os.RemoveAll(restored), replay(ctx, replayed, from)); err != nil {
		return fmt.Errorf("prepare the restore of etcd: %w", err)
	}
	config := embed.NewConfig()
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath:        filepath.Join(replayed.File("etcd"), "member", "snap", "db"),
		SkipHashCheck:       true, // a copy of the directory has no hash
		Name:                config.Name,
		OutputDataDir:       restored,
		PeerURLs:            []string{unused[0].String()},
		InitialCluster:      config.Name + "=" + unused[0].String(),
		InitialClusterToken: config.InitialClusterToken,
		RevisionBump:        bump,
		MarkCompacted:       bump > 0,
	})
	if err != nil {
		return errors.Join(fmt.Errorf("restore etcd from %s: %w", from, err), os.RemoveAll(restored))
	}
	return nil
}

// replay copies the etcd directory and writes the end of its log to the database, which an etcd that was killed has not done.
func replay(ctx context.Context, to datadir.Dir, from string) error {
	if err := errors.Join(os.RemoveAll(string(to)), os.CopyFS(to.File("etcd"), os.DirFS(from))); err != nil {
		return err
	}
	store, err := startEtcd(ctx, to, true)
	if err != nil {
		return err
	}
	return store.close()
}
