package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyWholeControllerManagerHasRateLimit(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "upstream"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{upstreamLoops, upstreamSidecar} {
		if err := os.WriteFile(filepath.Join(dir, "upstream", name), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	plane := &ControlPlane{config: Config{Binaries: Binaries{Dir: dir}, Dir: dir}}
	for name, tc := range map[string]struct {
		start   func(context.Context, Controller) (*Process, error)
		limited bool
		flag    string
	}{
		"loops":     {plane.StartUpstreamLoops, false, "--controllers=persistentvolume-binder-controller,"},
		"collector": {plane.StartUpstreamCollector, false, "--controllers=garbage-collector-controller "},
		"sidecar": {func(ctx context.Context, how Controller) (*Process, error) {
			return plane.StartUpstreamProvisioner(ctx, &Driver{Socket: "/csi.sock"}, how)
		}, false, "--csi-address=/csi.sock "},
		"all": {func(ctx context.Context, how Controller) (*Process, error) {
			return plane.StartControllerManager(ctx, "*,-one", how)
		}, true, "--controllers=*,-one "},
	} {
		t.Run(name, func(t *testing.T) {
			process, err := tc.start(patient(t), Controller{Name: name, Kubeconfig: "file", Args: []string{"--last"}})
			if err != nil {
				t.Fatal(err)
			}
			<-process.Done()
			flags := read(t, process.LogFile())
			if limited := !strings.Contains(flags, "--kube-api-qps=5000 --kube-api-burst=5000"); limited != tc.limited ||
				!strings.Contains(flags, tc.flag) {
				t.Errorf("flags %s", flags)
			}
			if !strings.HasSuffix(flags, " --last\n") {
				t.Errorf("the flags of the caller are not the last ones: %s", flags)
			}
		})
	}
}
