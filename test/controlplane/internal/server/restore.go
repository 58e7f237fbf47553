package server

import (
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
func Restore(directory datadir.Dir, from string, bump uint64) error {
	restored := directory.File("etcd")
	if err := os.RemoveAll(restored); err != nil {
		return fmt.Errorf("remove the data of etcd: %w", err)
	}
	config := embed.NewConfig()
	err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath:        filepath.Join(from, "member", "snap", "db"),
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
