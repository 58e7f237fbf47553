package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// upstreams is the program kube-apiserver of upstream, with the modules of ours. It is built once.
var upstreams = sync.OnceValues(func() (string, error) {
	versions, err := readModules()
	if err != nil {
		return "", err
	}
	file := filepath.Join(shared.folder, "kube-apiserver")
	build := exec.Command("go", "build", "-modfile="+ownModFile(versions[kubernetes]), "-o", file, kubernetes+"/cmd/kube-apiserver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false -tags=grpcnotrace")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kube-apiserver of upstream: %w: %s", err, output)
	}
	return file, nil
})

// gateLine is the line of the help that upstream's program does not have.
var gateLine = regexp.MustCompile(`(?m)^.*CustomResourceGracefulDeletion=true\|false \(BETA - default=true\)\n`)

// logged is what differs from run to run in a line of the log.
var logged = regexp.MustCompile(`(?m)^[EIW]\d{4} [0-9:.]+ +\d+ `)

// printed runs a program, and returns its exit code and what it prints.
func printed(t *testing.T, program, flag string) (int, string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, flag)
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), logged.ReplaceAllString(string(output), "")
}

// The flags, their help and the errors about them are those of upstream, but for the line of the gate.
func TestFlagsAreThoseOfUpstream(t *testing.T) {
	stock, err := upstreams()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		flag string
		code int
		text string
	}{
		{"--help", 0, "--feature-gates"},
		{"--grace=1", 1, "unknown flag: --grace"},
		{"--feature-gates=Foo=true", 1, "unrecognized feature gate: Foo"},
		{"--feature-gates=Foo", 1, "Foo"},
	} {
		code, want := printed(t, stock, tc.flag)
		if code != tc.code || !strings.Contains(want, tc.text) {
			t.Errorf("%s: upstream's program ends with %d, and prints:\n%s", tc.flag, code, want)
		}
		code, got := printed(t, program(), tc.flag)
		if lines := len(gateLine.FindAllString(got, -1)); tc.flag == "--help" && lines != 1 {
			t.Errorf("the help has %d lines of the gate", lines)
		}
		if got = gateLine.ReplaceAllString(got, ""); code != tc.code || got != want {
			t.Errorf("%s: exit code %d, %s", tc.flag, code, firstDifference(got, want))
		}
	}
}

// firstDifference returns the first lines in which two texts differ.
func firstDifference(got, want string) string {
	ours, others := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(ours), len(others)) {
		if ours[i] != others[i] {
			return fmt.Sprintf("%q, want %q", ours[i], others[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(ours), len(others))
}

// A server of upstream refuses our gate, which has to go from the flags before it.
func TestUpstreamRefusesGate(t *testing.T) {
	stock, err := upstreams()
	if err != nil {
		t.Fatal(err)
	}
	code, text := printed(t, stock, "--feature-gates=CustomResourceGracefulDeletion=true")
	if code != 1 || !strings.Contains(text, "unrecognized feature gate: CustomResourceGracefulDeletion") {
		t.Errorf("exit code %d: %s", code, text)
	}
}
