package instances

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestSocketHasMode0600WhateverTheUmask(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	path := filepath.Join(directory(t), "i.sock")
	listener, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket has mode %v, %v, want 0600", info.Mode(), err)
	}
}

// owned is a file of a user.
type owned struct {
	fs.FileInfo
	user uint32
}

func (o owned) Sys() any { return &syscall.Stat_t{Uid: o.user} }

func TestOwnFilesAndThoseOfRootAreTrusted(t *testing.T) {
	own := uint32(os.Geteuid())
	for user, want := range map[uint32]bool{own: true, 0: true, own + 1: false} {
		if got := isTrusted(owned{user: user}); got != want {
			t.Errorf("a file of user %d is trusted: %v, want %v", user, got, want)
		}
	}
}
