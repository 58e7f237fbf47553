package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/exeunt-io/exeunt/test/controlplane/internal/datadir"
)

const (
	// maxSocketPath is the longest path that a unix socket can have: the
	// kernel's 108 bytes, less the final zero.
	maxSocketPath = 107
	// quota is how many bytes etcd stores before it refuses writes.
	quota = 8 << 30
)

// unused is the address for fields that etcd requires and a single member does not use.
var unused = []url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}

// storage is a running etcd.
type storage struct {
	// Etcd is nil if etcd runs in another process.
	*embed.Etcd
	// level is the minimum level of logged messages.
	level zap.AtomicLevel
	// endpoint for clients.
	endpoint string
	// socketDir is removed at the end, unless it is the data directory.
	socketDir string
}

// startEtcd starts etcd on the data directory and waits until it serves.
func startEtcd(ctx context.Context, directory datadir.Dir, skipFsync bool) (*storage, error) {
	socketDir, err := chooseSocketDir(directory)
	if err != nil {
		return nil, err
	}
	store := &storage{level: zap.NewAtomicLevelAt(zap.ErrorLevel),
		endpoint: "unix://" + filepath.Join(socketDir, "etcd.sock")}
	if socketDir != string(directory) {
		store.socketDir = socketDir
	}
	config, err := etcdConfig(directory, store.endpoint)
	if err != nil {
		return nil, err
	}
	config.UnsafeNoFsync = skipFsync
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(store.level))
	if store.Etcd, err = embed.StartEtcd(config); err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-store.Server.ReadyNotify():
		return store, nil
	case err = <-store.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	return nil, errors.Join(fmt.Errorf("wait for etcd: %w", err), store.close())
}

// newLogger returns etcd's logger, which writes to stderr.
func newLogger(level zap.AtomicLevel) *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level))
}

// failed returns a channel with the failure of an etcd in this process.
func (s *storage) failed() <-chan error {
	if s.Etcd == nil {
		return nil
	}
	return s.Err()
}

// close stops an etcd in this process and removes its socket. It turns logging off first, because etcd logs
// each closed listener as an error.
func (s *storage) close() error {
	if s.Etcd == nil {
		return nil
	}
	s.level.SetLevel(zap.FatalLevel)
	s.Close()
	if s.socketDir == "" {
		return nil
	}
	return os.RemoveAll(s.socketDir)
}

// etcdConfig returns the configuration of a single member without peers.
func etcdConfig(directory datadir.Dir, endpoint string) (*embed.Config, error) {
	client, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("parse etcd endpoint: %w", err)
	}
	config := embed.NewConfig()
	config.Dir = directory.File("etcd")
	config.ListenClientUrls = []url.URL{*client}
	config.AdvertiseClientUrls = unused
	config.ListenPeerUrls = nil
	config.AdvertisePeerUrls = unused
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.QuotaBackendBytes = quota
	return config, nil
}

// chooseSocketDir returns a directory, private to its owner, whose path is
// short enough for a socket: the data directory if possible.
func chooseSocketDir(directory datadir.Dir) (string, error) {
	if len(directory.File("etcd.sock")) <= maxSocketPath {
		return string(directory), nil
	}
	short, err := os.MkdirTemp("", "etcd-") // mode 0700
	if err != nil {
		return "", fmt.Errorf("make directory for the etcd socket: %w", err)
	}
	return short, nil
}
