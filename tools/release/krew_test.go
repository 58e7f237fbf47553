package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// checkAccepted runs krew's own validator on the manifest, and krew's installation of each
// archive.
func checkAccepted(t *testing.T, out string, platforms []platform, archives []string) {
	t.Helper()
	programs, manifest := buildKrew(t), filepath.Join(out, tool+".yaml")
	validate := exec.CommandContext(t.Context(), filepath.Join(programs, "validate-krew-manifest"), "-manifest", manifest, "-skip-install")
	if text, err := validate.CombinedOutput(); err != nil {
		t.Errorf("krew refuses the manifest: %v\n%s", err, text)
	}
	for i, p := range platforms {
		root := t.TempDir()
		install := exec.CommandContext(t.Context(), filepath.Join(programs, "krew"), "install", "--manifest", manifest, "--archive", filepath.Join(out, archives[i]))
		install.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_OS="+p.os, "KREW_ARCH="+p.arch, "KREW_NO_UPGRADE_CHECK=1")
		if text, err := install.CombinedOutput(); err != nil {
			t.Errorf("krew does not install %s: %v\n%s", archives[i], err, text)
		}
		for _, file := range []string{p.executable(plugin), "LICENSE"} {
			if _, err := os.Stat(filepath.Join(root, "store", tool, "v1.2.3", file)); err != nil {
				t.Errorf("krew did not unpack %s: %v", file, err)
			}
		}
	}
}

// buildKrew compiles krew and its validator, and returns their directory.
func buildKrew(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", to+"/", "sigs.k8s.io/krew/cmd/krew", "sigs.k8s.io/krew/cmd/validate-krew-manifest")
	command.Dir, command.Env = filepath.Join("..", "krew"), append(os.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build krew: %v\n%s", err, text)
	}
	return to
}
