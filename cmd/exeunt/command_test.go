package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// execute runs the command as program with args, and returns what it prints to
// standard output and its error.
func execute(ctx context.Context, program string, args ...string) (string, error) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	command := newCommand(program, streams)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	return out.String(), err
}

// wrongCommandLines are refused with what they want.
var wrongCommandLines = map[string]struct {
	args []string
	want string
}{
	"a command that does not exist":      {[]string{"fly"}, `unknown command "fly", see exeunt --help`},
	"a misspelled command":               {[]string{"dmeo"}, `unknown command "dmeo", did you mean demo?`},
	"a misspelled command with flags":    {[]string{"staus", "--context", "prod"}, `unknown command "staus", did you mean status?`},
	"a misspelled command of journal":    {[]string{"journal", "lits", "--ouptut=json"}, `unknown command "lits", did you mean list?`},
	"a flag without a command":           {[]string{"--contxt=prod"}, "there is no flag --contxt; exeunt --help lists all"},
	"a flag that does not exist":         {[]string{"demo", "--fast"}, "there is no flag --fast; exeunt demo --help lists all"},
	"an argument of the demo":            {[]string{"demo", "now"}, `exeunt demo takes no arguments, not "now", see exeunt demo --help`},
	"another output":                     {[]string{"demo", "-o", "yaml"}, `--output must be json or be left out, not "yaml"`},
	"another gate":                       {[]string{"demo", "--gate=maybe"}, `--gate must be both, on or off, not "maybe"`},
	"slow lines for programs":            {[]string{"demo", "--slow", "-o", "json"}, "--slow is for people, --output=json is not: leave one out"},
	"a story without a second side":      {[]string{"demo", "--story=killed"}, "--story needs --against=upstream"},
	"a story that does not exist":        {[]string{"demo", "--against=upstream", "--story=x"}, `there is no story "x", there are: killed, policy-race, pv-first, pvc-first, namespace`},
	"another side":                       {[]string{"demo", "--against=me"}, `--against must be upstream, not "me"`},
	"a gate for stories":                 {[]string{"demo", "--against=upstream", "--gate=on"}, "--gate does not go with --against"},
	"no volumes":                         {[]string{"demo", "--against=upstream", "--volumes=0"}, "--volumes must be at least 1"},
	"upstream is not built":              {[]string{"demo", "--against=upstream", "--bin-dir=/none"}, "find kube-controller-manager: there is no such program in /none/upstream, run `make build-upstream` first"},
	"no time":                            {[]string{"demo", "--timeout=0s"}, "--timeout must be longer than 0"},
	"a journal command that is unknown":  {[]string{"journal", "fly"}, `unknown command "fly", see exeunt journal --help`},
	"an argument of the list":            {[]string{"journal", "list", "x"}, `exeunt journal list takes no arguments, not "x"`},
	"another format of the list":         {[]string{"journal", "list", "-o", "wide"}, `--output must be json, yaml or be left out, not "wide"`},
	"no claim to finish":                 {[]string{"journal", "finish"}, "exeunt journal finish needs the UID of a claim"},
	"no claim to drop":                   {[]string{"journal", "drop"}, "exeunt journal drop needs the UID of a claim"},
	"no time to finish":                  {[]string{"journal", "finish", "x", "--timeout=0s"}, "--timeout must be longer than 0"},
	"no kubeconfig":                      {[]string{"journal", "list", "--kubeconfig=/does/not/exist"}, "load kubeconfig"},
	"no list of volumes":                 {[]string{"audit"}, "one of --csi-address and --volumes is required"},
	"no driver":                          {[]string{"audit", "--volumes=f"}, "--volumes needs --driver"},
	"no socket":                          {[]string{"audit", "--csi-address=/does/not/exist"}, "there is no CSI driver at --csi-address"},
	"an argument of the audit":           {[]string{"audit", "--csi-address=s", "vol-1"}, `exeunt audit takes no arguments, not "vol-1"`},
	"another format of the audit":        {[]string{"audit", "--csi-address=s", "-o", "xml"}, `--output must be json, yaml, wide, name or be left out, not "xml"`},
	"another format of adopted volumes":  {[]string{"audit", "--csi-address=s", "--adopt=a", "-o", "wide"}, "--output of --adopt must be json, yaml"},
	"a class and nothing to adopt":       {[]string{"audit", "--csi-address=s", "--storage-class=a"}, "--storage-class is for --adopt only"},
	"too few contexts":                   {[]string{"audit", "--csi-address=s", "--kubeconfig=a", "--kubeconfig=b", "--context=c"}, "2 --kubeconfig need as many --context or none, not 1"},
	"one server for two clusters":        {[]string{"audit", "--csi-address=s", "--context=a", "--context=b", "--token=t"}, "--token is for one cluster, not 2"},
	"a negative time to settle":          {[]string{"audit", "--csi-address=s", "--settle=-1s"}, "--settle must not be negative"},
	"no time for a call":                 {[]string{"audit", "--csi-address=s", "--timeout=0s"}, "--timeout must be longer than 0"},
	"no kubeconfig of the audit":         {[]string{"audit", "--volumes=f", "--driver=d", "--kubeconfig=/does/not/exist"}, "load kubeconfig"},
	"a feature gate that does not exist": {[]string{"sandbox", "--feature-gates=Fly=true"}, `--feature-gates: unknown gate "Fly"`},
	"a feature gate with no value":       {[]string{"sandbox", "--feature-gates=HonorPVReclaimPolicy=maybe"}, "see exeunt sandbox --help"},
}

func TestWrongCommandLineIsRefusedInASentence(t *testing.T) {
	for name, tc := range wrongCommandLines {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t.Context(), "exeunt", tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || out != "" {
				t.Errorf("error = %v, output %q; want %s in one line, and no output", err, out, tc.want)
			}
			if status := exitStatus(err); status != 1 {
				t.Errorf("exit status = %d, want 1", status)
			}
		})
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, command := range []string{"demo", "sandbox"} {
		_, err := execute(t.Context(), "exeunt", command, "--bin-dir", filepath.Join(temporary, "bin"))
		if err == nil || !strings.Contains(err.Error(), "controlplane") || !strings.Contains(err.Error(), "make build") {
			t.Errorf("exeunt %s: %v, want the program that is missing and how to get it", command, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestSignalBeforeTheStartIsTheError(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(signalError{syscall.SIGTERM})
	for _, command := range []string{"demo", "sandbox"} {
		if _, err := execute(ctx, "exeunt", command, "--bin-dir", t.TempDir()); exitStatus(err) != 143 {
			t.Errorf("exeunt %s: %v, want exit status 143", command, err)
		}
	}
}

func TestVersionIsPrinted(t *testing.T) {
	out, err := execute(t.Context(), "exeunt", "version")
	if err != nil || !strings.HasPrefix(out, "exeunt v") {
		t.Errorf("version = %q, %v", out, err)
	}
}

func TestHelpHasTheNameOfThePlugin(t *testing.T) {
	for program, want := range map[string]string{"exeunt": "  exeunt [command]", "kubectl-exeunt": "  kubectl exeunt [command]"} {
		if out, err := execute(t.Context(), program); err != nil || !strings.Contains(out, want) {
			t.Errorf("help of %s = %v:\n%s\nwant %q", program, err, out, want)
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
		if !slices.Equal(config.Gates, want) || config.Binaries.Dir != "bin" || config.Timeout != time.Second || !config.Keep || config.Printer == nil {
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

func TestExitStatusNamesTheSignal(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"well":            {nil, 0},
		"with an error":   {errors.New("broken"), 1},
		"by Ctrl-C":       {signalError{syscall.SIGINT}, 130},
		"by kill":         {fmt.Errorf("wait: %w", signalError{syscall.SIGTERM}), 143},
		"with a refusal":  {fmt.Errorf("adopt: %w", exitCode{exitRefused, errors.New("the volume is attached")}), 4},
		"and not cleanly": {errors.Join(signalError{syscall.SIGINT}, errors.New("stop driver")), 130},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exitStatus(tc.err); got != tc.want {
				t.Errorf("exit status = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestSignalsEndTheContextOnce(t *testing.T) {
	ctx, stop := signalContext(t.Context())
	defer stop()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	var signalled signalError
	if !errors.As(context.Cause(ctx), &signalled) || signalled.signal != syscall.SIGTERM {
		t.Errorf("cause = %v, want the signal", context.Cause(ctx))
	}
}
