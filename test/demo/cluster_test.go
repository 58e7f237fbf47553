package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProvisionerThatDoesNotRunIsNotKilled(t *testing.T) {
	if err := new(Cluster).KillProvisioner(); err == nil {
		t.Error("a provisioner was killed that does not run")
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
