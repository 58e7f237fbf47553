package rig

import (
	"context"
	"fmt"
	"net"

	"github.com/exeunt-io/exeunt/test/bench/measure"
)

// ProfilePath is where all processes serve CPU profiles.
const ProfilePath = "/debug/pprof/profile"

// serveProfiles returns the flags that make a process serve profiles, none without profiling. The
// sidecars that have nothing to do serve none.
func (p *Programs) serveProfiles(ctx context.Context, process string) ([]string, error) {
	if !p.rig.config.Profiling || process == measure.OtherSidecars {
		return nil, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	address := listener.Addr().String()
	if process == measure.Sidecar {
		p.Profiles[process] = "http://" + address + ProfilePath
		return []string{"--enable-pprof", "--http-endpoint=" + address}, listener.Close()
	}
	p.Profiles[process] = "https://" + address + ProfilePath
	_, port, _ := net.SplitHostPort(address)
	return []string{"--profiling", "--bind-address=127.0.0.1", "--secure-port=" + port, "--authorization-always-allow-paths=/debug/pprof/*"}, listener.Close()
}
