package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever forgets to set KUBECONFIG in the other terminal works in a cluster with data.
func TestHintNamesWhatItDeletes(t *testing.T) {
	for line := range strings.Lines(hint + cloudHint + balancerHint) {
		if strings.HasPrefix(line, "kubectl delete ") && strings.Contains(line, "--all") {
			t.Errorf("in another cluster this deletes the volumes of everybody: %s", line)
		}
	}
}

// nodePrograms writes programs for a cluster with a node, and returns their directory.
func nodePrograms(t *testing.T, node, sandbox string) string {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "bin")
	if err := os.MkdirAll(filepath.Join(directory, "node"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{"node": node, "sandbox": sandbox} {
		if err := os.WriteFile(filepath.Join(directory, "node", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestSandboxWithANodeRunsTheProgramOfTheClone(t *testing.T) {
	directory := nodePrograms(t, "", `echo "$@"`)
	out, err := execute(t.Context(), "--node", "--keep", "--bin-dir", directory)
	want := fmt.Sprintf("--bin-dir=%s --source=%s --keep\n", directory, filepath.Dir(directory))
	if err != nil || out != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

func TestSandboxWithANodeSaysWhyItCannotRun(t *testing.T) {
	refused := nodePrograms(t, "echo kubelet needs the root user", "exit 1")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no programs":      {[]string{"--bin-dir", t.TempDir()}, "--node needs kubelet and containerd, which a clone of the repository builds: "},
		"how to get them":  {[]string{"--bin-dir", t.TempDir()}, "run `make node` first"},
		"another machine":  {[]string{"--bin-dir", refused}, "no node can run on this machine: kubelet needs the root user"},
		"flags of neither": {[]string{"--bin-dir", refused, "--feature-gates=HonorPVReclaimPolicy=false"}, "leave out --faults and --feature-gates"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t.Context(), append([]string{"--node"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || out != "" {
				t.Errorf("error = %v, output %q; want %s in one line, and no output", err, out, tc.want)
			}
		})
	}
}
