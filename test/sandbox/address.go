package sandbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
)

// Ports below those that systems assign to connections.
const firstPort, lastPort = 20_000, 32_000

// ChooseAddress sets the address of a control plane that has not run on the directory, see Config.Dir. A port
// that the system assigned could be assigned to a connection of a program while the API
// server is down, and the API server could not return to it.
func ChooseAddress(dir string) error {
	dataDir := filepath.Join(dir, "data")
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort))
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
		if err != nil {
			continue // taken
		}
		err = errors.Join(listener.Close(), os.MkdirAll(dataDir, 0o700),
			os.WriteFile(filepath.Join(dataDir, "address"), []byte(address), 0o600))
		if err != nil {
			return fmt.Errorf("choose address of the API server: %w", err)
		}
		return nil
	}
	return errors.New("choose address of the API server: no port is free")
}

// FreePort returns a port of this machine that no program listens on now.
func FreePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	return address.Port, listener.Close()
}
