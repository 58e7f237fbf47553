package main

import (
	"context"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/internal/terminal"
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
	"a command that does not exist":     {[]string{"fly"}, `unknown command "fly", see exeunt --help`},
	"a misspelled command":              {[]string{"adit"}, `unknown command "adit", did you mean audit?`},
	"a misspelled command with flags":   {[]string{"staus", "--context", "prod"}, `unknown command "staus", did you mean status?`},
	"a misspelled command of journal":   {[]string{"journal", "lits", "--ouptut=json"}, `unknown command "lits", did you mean list?`},
	"a flag that does not exist":        {[]string{"why", "--fast"}, "there is no flag --fast; exeunt why --help lists all"},
	"a flag without a command":          {[]string{"--contxt=prod"}, "there is no flag --contxt; exeunt --help lists all"},
	"a journal command that is unknown": {[]string{"journal", "fly"}, `unknown command "fly", see exeunt journal --help`},
	"an argument of the list":           {[]string{"journal", "list", "x"}, `exeunt journal list takes no arguments, not "x"`},
	"another format of the list":        {[]string{"journal", "list", "-o", "wide"}, `--output must be json, yaml or be left out, not "wide"`},
	"no claim to finish":                {[]string{"journal", "finish"}, "exeunt journal finish needs the UID of a claim"},
	"no claim to drop":                  {[]string{"journal", "drop"}, "exeunt journal drop needs the UID of a claim"},
	"no time to finish":                 {[]string{"journal", "finish", "x", "--timeout=0s"}, "--timeout must be longer than 0"},
	"no kubeconfig":                     {[]string{"journal", "list", "--kubeconfig=/does/not/exist"}, "load kubeconfig"},
	"no list of volumes":                {[]string{"audit"}, "one of --csi-address and --volumes is required"},
	"no driver":                         {[]string{"audit", "--volumes=f"}, "--volumes needs --driver"},
	"no socket":                         {[]string{"audit", "--csi-address=/does/not/exist"}, "there is no CSI driver at --csi-address"},
	"an argument of the audit":          {[]string{"audit", "--csi-address=s", "vol-1"}, `exeunt audit takes no arguments, not "vol-1"`},
	"another format of the audit":       {[]string{"audit", "--csi-address=s", "-o", "xml"}, `--output must be json, yaml, wide, name or be left out, not "xml"`},
	"another format of adopted volumes": {[]string{"audit", "--csi-address=s", "--adopt=a", "-o", "wide"}, "--output of --adopt must be json, yaml"},
	"a class and nothing to adopt":      {[]string{"audit", "--csi-address=s", "--storage-class=a"}, "--storage-class is for --adopt only"},
	"too few contexts": {[]string{"audit", "--csi-address=s", "--kubeconfig=a", "--kubeconfig=b",
		"--context=c"}, "2 --kubeconfig need as many --context or none, not 1"},
	"one server for two clusters": {[]string{"audit", "--csi-address=s", "--context=a", "--context=b", "--token=t"}, "--token is for one cluster, not 2"},
	"a negative time to settle":   {[]string{"audit", "--csi-address=s", "--settle=-1s"}, "--settle must not be negative"},
	"no time for a call":          {[]string{"audit", "--csi-address=s", "--timeout=0s"}, "--timeout must be longer than 0"},
	"deadlines and volumes":       {[]string{"rollback", "--deadlines-only", "--stopped=d"}, "--deadlines-only leaves volumes alone"},
	"no node of the forecast":     {[]string{"forecast"}, "which node? give it as node/NAME; see exeunt forecast --help"},
	"another format of it":        {[]string{"forecast", "node/a", "-o", "yaml"}, `--output must be json or be left out, not "yaml"`},
	"no time to forecast":         {[]string{"forecast", "node/a", "--timeout=0s"}, "--timeout must be longer than 0"},
	"an argument of rollback":     {[]string{"rollback", "node"}, `exeunt rollback takes no arguments, not "node"`},
	"an argument of its nodes":    {[]string{"rollback", "nodes", "n1"}, `exeunt rollback nodes takes no arguments, not "n1"`},
	"no kubeconfig of the audit":  {[]string{"audit", "--volumes=f", "--driver=d", "--kubeconfig=/does/not/exist"}, "load kubeconfig"},
}

func TestWrongCommandLineIsRefusedInASentence(t *testing.T) {
	for name, tc := range wrongCommandLines {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t.Context(), "exeunt", tc.args...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || out != "" {
				t.Errorf("error = %v, output %q; want %s in one line, and no output", err, out, tc.want)
			}
			if status := terminal.ExitStatus(err); status != 1 {
				t.Errorf("exit status = %d, want 1", status)
			}
		})
	}
}

func TestVersionIsPrinted(t *testing.T) {
	out, err := execute(t.Context(), "exeunt", "version")
	if err != nil || !strings.HasPrefix(out, "exeunt v") {
		t.Errorf("version = %q, %v", out, err)
	}
}

func TestHelpHasTheNameOfThePlugin(t *testing.T) {
	for program, want := range map[string]string{"exeunt": "  exeunt [command]",
		"kubectl-exeunt": "  kubectl exeunt [command]"} {
		if out, err := execute(t.Context(), program); err != nil || !strings.Contains(out, want) {
			t.Errorf("help of %s = %v:\n%s\nwant %q", program, err, out, want)
		}
	}
}
