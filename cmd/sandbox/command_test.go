package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// execute runs the command, and returns what it prints to standard output and its error.
func execute(ctx context.Context, args ...string) (string, error) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	command := newCommand(streams)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	return out.String(), err
}

// wrongCommandLines are refused with what they want.
var wrongCommandLines = map[string]struct {
	args []string
	want string
}{
	"a misspelled command":          {[]string{"dmeo"}, `unknown command "dmeo", did you mean demo?`},
	"a flag that does not exist":    {[]string{"demo", "--fast"}, "there is no flag --fast; sandbox demo --help lists all"},
	"an argument of the demo":       {[]string{"demo", "now"}, `sandbox demo takes no arguments, not "now", see sandbox demo --help`},
	"another output":                {[]string{"demo", "-o", "yaml"}, `--output must be json or be left out, not "yaml"`},
	"another gate":                  {[]string{"demo", "--gate=maybe"}, `--gate must be both, on or off, not "maybe"`},
	"slow lines for programs":       {[]string{"demo", "--slow", "-o", "json"}, "--slow is for people, --output=json is not: leave one out"},
	"a story without a second side": {[]string{"demo", "--story=killed"}, "--story needs --against=upstream"},
	"a story that does not exist": {[]string{"demo", "--against=upstream", "--story=x"},
		`there is no story "x", there are: killed, policy-race, pv-first, pvc-first, namespace, grace, node, teardown`},
	"another side":       {[]string{"demo", "--against=me"}, `--against must be upstream, not "me"`},
	"a gate for stories": {[]string{"demo", "--against=upstream", "--gate=on"}, "--gate does not go with --against"},
	"no kube-apiserver of ours": {[]string{"demo", "--against=upstream", "--story=grace", "--bin-dir=/none"},
		"find virtual-machine: there is no such program in /none, run `make apiserver` first"},
	"no programs for graceful deletion": {[]string{"--graceful-deletion", "--bin-dir=/none"},
		"find virtual-machine: there is no such program in /none, run `make apiserver` first"},
	"graceful deletion and volumes": {[]string{"--graceful-deletion", "--faults=f"},
		"--graceful-deletion runs no volumes and no node: leave out --faults, --feature-gates and --node"},
	"simulated nodes and volumes": {[]string{"--cloud-nodes=3", "--faults=f"},
		"--cloud-nodes runs no csimock and no real node: leave out --faults, --feature-gates, --node and --graceful-deletion"},
	"load balancers without csimock": {[]string{"--cloud", "--cloud-nodes=3"},
		"--cloud adds to the cluster with csimock: leave out --cloud-nodes, --node and --graceful-deletion"},
	"no simulated node": {[]string{"--cloud-nodes=0"}, "--cloud-nodes must be at least 1"},
	"no programs for simulated nodes": {[]string{"--cloud-nodes=3", "--bin-dir=/none"},
		"find node-terminator: there is no such program in /none, run `make build` first"},
	"no programs for the story": {[]string{"demo", "--against=upstream", "--story=node", "--bin-dir=/none"},
		"find node-terminator: there is no such program in /none, run `make build` first"},
	"no programs for the end of a cluster": {[]string{"demo", "--story=teardown", "--bin-dir=/none"},
		"find node-terminator: there is no such program in /none, run `make build` first"},
	"no volumes": {[]string{"demo", "--against=upstream", "--volumes=0"}, "--volumes must be at least 1"},
	"upstream is not built": {[]string{"demo", "--against=upstream", "--bin-dir=/none"},
		"find kube-controller-manager: there is no such program in /none/upstream, run `make build-upstream` first"},
	"no time":                            {[]string{"demo", "--timeout=0s"}, "--timeout must be longer than 0"},
	"a feature gate that does not exist": {[]string{"--feature-gates=Fly=true"}, `--feature-gates: unknown gate "Fly"`},
	"a feature gate with no value":       {[]string{"--feature-gates=HonorPVReclaimPolicy=maybe"}, "see sandbox --help"},
}

func TestWrongCommandLineIsRefusedInASentence(t *testing.T) {
	for name, tc := range wrongCommandLines {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t.Context(), tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || out != "" {
				t.Errorf("error = %v, output %q; want %s in one line, and no output", err, out, tc.want)
			}
			if status := terminal.ExitStatus(err); status != 1 {
				t.Errorf("exit status = %d, want 1", status)
			}
		})
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, command := range [][]string{{"demo"}, {}} {
		_, err := execute(t.Context(), append(command, "--bin-dir", filepath.Join(temporary, "bin"))...)
		if err == nil || !strings.Contains(err.Error(), "controlplane") || !strings.Contains(err.Error(), "make build") {
			t.Errorf("sandbox %s: %v, want the program that is missing and how to get it", command, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestSignalBeforeTheStartIsTheError(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(terminal.SignalError{Signal: syscall.SIGTERM})
	for _, command := range [][]string{{"demo"}, {}} {
		if _, err := execute(ctx, append(command, "--bin-dir", t.TempDir())...); terminal.ExitStatus(err) != 143 {
			t.Errorf("sandbox %s: %v, want exit status 143", command, err)
		}
	}
}

func TestFlagsSetTheConfigurationOfTheDemo(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	for gate, want := range map[string][]bool{"both": {true, false}, "on": {true}, "off": {false}} {
		flags := demoFlags{binDir: "bin", gate: gate, output: "json", timeout: time.Second, keep: true}
		config, err := flags.config(t.Context(), streams)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(config.Gates, want) || config.Binaries.Dir != "bin" || config.Timeout != time.Second ||
			!config.Keep || config.Printer == nil {
			t.Errorf("configuration for --gate=%s is %+v", gate, config)
		}
	}
}

func TestSandboxHonorsThePolicyByDefault(t *testing.T) {
	for name, tc := range map[string]struct {
		gates map[string]bool
		want  bool
	}{
		"by default":   {map[string]bool{}, true},
		"switched off": {map[string]bool{"HonorPVReclaimPolicy": false}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := (sandboxFlags{gates: tc.gates}).honor(); err != nil || got != tc.want {
				t.Errorf("honor = %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}
