package program

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// idle is a program that serves one flag, refuses others and does nothing.
type idle struct{ ran bool }

func (*idle) AddFlags(flags *pflag.FlagSet) {
	flags.Int("workers", 1, "how many")
	flags.String("kubeconfig", "", "which file")
	RefuseFlags(flags, "nobody here collects garbage; leave it where it is", "concurrent-gc-syncs",
		"enable-garbage-collector")
}
func (*idle) Complete() error { return nil }
func (i *idle) Run(context.Context) error {
	i.ran = true
	return nil
}

func TestWrongCommandLineIsOneSentence(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"a flag of others, with a value": {[]string{"--concurrent-gc-syncs=5"},
			"--concurrent-gc-syncs is refused: nobody here collects garbage; leave it where it is"},
		"with a value in a word of its own": {[]string{"--concurrent-gc-syncs", "5"},
			"--concurrent-gc-syncs is refused: nobody here collects garbage; leave it where it is"},
		"a switch of others": {[]string{"--enable-garbage-collector"},
			"--enable-garbage-collector is refused: nobody here collects garbage; leave it where it is"},
		"a misspelled flag":            {[]string{"--kubeconfg=x"}, "there is no flag --kubeconfg; --help lists all"},
		"a misspelled refused flag":    {[]string{"--concurrent-gc-sync=x"}, "there is no flag --concurrent-gc-sync; --help lists all"},
		"something else altogether":    {[]string{"--frobnicate"}, "there is no flag --frobnicate; --help lists all"},
		"a short name that nobody has": {[]string{"-x"}, "there is no flag -x; names have two dashes, as --NAME=VALUE; --help lists all"},
		"a value of another type":      {[]string{"--workers=many"}, "--workers=many is refused: it must be a whole number; see --help"},
		"another version number": {[]string{"--version=v1.2.3"},
			"--version=v1.2.3 is refused: the version of the build cannot be changed; give --version or --version=raw"},
		"an argument where only flags have a sense": {[]string{"now"}, `unknown command "now" for "idle"`},
	} {
		t.Run(name, func(t *testing.T) {
			work := &idle{}
			_, err := execute(work, tc.args...)
			if err == nil || err.Error() != tc.want || work.ran {
				t.Errorf("%v: ran %v, error %v, want %q", tc.args, work.ran, err, tc.want)
			}
		})
	}
}

func TestVersionFlagPrintsAndExits(t *testing.T) {
	for arg, want := range map[string]string{"--version": "idle version v", "--version=true": "idle version v",
		"--version=raw": `GitVersion:"v`} {
		work := &idle{}
		output, err := execute(work, arg)
		if err != nil || work.ran || !strings.Contains(output, want) {
			t.Errorf("%s: ran %v, error %v, printed %q, want %q", arg, work.ran, err, output, want)
		}
	}
	work := &idle{}
	if output, err := execute(work, "--version=false"); err != nil || !work.ran || output != "" {
		t.Errorf("--version=false: ran %v, error %v, printed %q", work.ran, err, output)
	}
}

func TestHelpListsNoRefusedFlag(t *testing.T) {
	output, err := execute(&idle{}, "--help")
	if err != nil || !strings.Contains(output, "--workers") || strings.Contains(output, "gc-syncs") {
		t.Errorf("error %v, printed:\n%s", err, output)
	}
}

func execute(runner Runner, args ...string) (output string, err error) {
	command := &cobra.Command{Use: "idle"}
	addRunner(command, runner)
	var printed bytes.Buffer
	command.SetOut(&printed)
	command.SetArgs(args)
	err = command.Execute()
	return printed.String(), err
}
