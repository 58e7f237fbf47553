package csimock_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

func TestListenReplacesStaleSocket(t *testing.T) {
	socket := filepath.Join(shortDir(t), "csi.sock")
	left, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false) // as a program leaves it that was killed
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	listener, err := csimock.Listen("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there (%v)", err)
	}
}

func TestListenRefuses(t *testing.T) {
	directory := shortDir(t)
	served, file := filepath.Join(directory, "served"), filepath.Join(directory, "file")
	listener, err := csimock.Listen(served)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ endpoint, want string }{
		"socket with a server": {served, "served by another program"},
		"regular file":         {file, "is not a socket"},
		"missing directory":    {filepath.Join(directory, "no", "csi.sock"), "no such file or directory"},
		"path too long":        {filepath.Join(directory, strings.Repeat("s", 108)), "at most 107 are allowed"},
		"TCP endpoint":         {"tcp://localhost:1", "must be a path"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := csimock.Listen(tc.endpoint); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Listen gives %v, want %q", err, tc.want)
			}
		})
	}
	if content, err := os.ReadFile(file); err != nil || string(content) != "precious" {
		t.Errorf("the file now holds %q (%v)", content, err)
	}
}

func TestServerStopsWithItsContext(t *testing.T) {
	socket := filepath.Join(shortDir(t), "csi.sock")
	ctx, cancel := context.WithCancel(t.Context())
	server, err := csimock.Start(ctx, csimock.Config{}, socket)
	if err != nil {
		t.Fatal(err)
	}
	driver := clientsOf(dial(t, socket))
	info, err := driver.GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	expectCode(t, err, codes.OK)
	if info.GetName() != server.Name() || info.GetVendorVersion() == "" {
		t.Errorf("the driver says it is %v, want %s", info, server.Name())
	}
	cancel()
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there (%v)", err)
	}
}
