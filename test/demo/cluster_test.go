package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// startShell starts a process that runs a script.
func startShell(t *testing.T, script string) *sandbox.Process {
	t.Helper()
	process, err := sandbox.Start(t.Context(), sandbox.Program{
		Name: "it", Path: "/bin/sh", Args: []string{"-c", script}, LogFile: filepath.Join(t.TempDir(), "it.log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return process
}

func TestDeadProgramIsReportedOnce(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"with an error": {"echo the reason; exit 3", "the reason"},
		"without one":   {"exit 0", "the process ended by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			reports := make(chan error, 2)
			cluster := &Cluster{config: ClusterConfig{Died: func(err error) { reports <- err }}}
			process := startShell(t, tc.script)
			cluster.guard(process, process.Stop)
			if err := <-reports; !strings.Contains(err.Error(), tc.want) {
				t.Errorf("reported: %v, want %q", err, tc.want)
			}
			if err := cluster.Stop(); err != nil {
				t.Errorf("Stop reports it again: %v", err)
			}
			if len(reports) != 0 {
				t.Errorf("reported again: %v", <-reports)
			}
		})
	}
}

func TestProgramsAreStoppedInReverseOrder(t *testing.T) {
	cluster := &Cluster{config: ClusterConfig{Died: func(err error) { t.Errorf("reported: %v", err) }}}
	first, second := startShell(t, "exec sleep 60"), startShell(t, "exec sleep 60")
	cluster.guard(first, first.Stop)
	cluster.guard(second, second.Stop)
	if err := cluster.stopAllBut(1); err != nil {
		t.Error(err)
	}
	<-second.Done()
	select {
	case <-first.Done():
		t.Error("the first program has ended too")
	default:
	}
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
	<-first.Done()
}

func TestKilledProvisionerIsNotReported(t *testing.T) {
	cluster := &Cluster{config: ClusterConfig{Died: func(err error) { t.Errorf("reported: %v", err) }}}
	if err := cluster.KillProvisioner(); err == nil {
		t.Error("a provisioner was killed that does not run")
	}
	for range onlyPlaneAndDriver + 1 {
		process := startShell(t, "exec sleep 60")
		cluster.guard(process, process.Stop)
	}
	last := cluster.programs[onlyPlaneAndDriver].process
	if err := cluster.KillProvisioner(); err != nil {
		t.Error(err)
	}
	<-last.Done()
	if len(cluster.programs) != onlyPlaneAndDriver {
		t.Errorf("%d programs run, want control plane and driver", len(cluster.programs))
	}
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
}

func TestKeepLeavesTheDirectory(t *testing.T) {
	for _, keep := range []bool{false, true} {
		var out bytes.Buffer
		dir := filepath.Join(t.TempDir(), "cluster")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		cluster := &Cluster{dir: dir, config: ClusterConfig{Keep: keep, Progress: Progress{Out: &out}}}
		if err := cluster.Stop(); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(dir)
		if kept := err == nil; kept != keep || strings.Contains(out.String(), dir) != keep {
			t.Errorf("with keep %v: kept is %v and the output %q", keep, kept, &out)
		}
	}
}
