package terminal

import (
	"errors"
	"testing"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
)

func TestFlagErrorIsOneSentence(t *testing.T) {
	for given, want := range map[string]string{
		"--workers=abc":                  "--workers=abc is refused: it must be a whole number; see --help",
		"--workers=99999999999999999999": "--workers=99999999999999999999 is refused: it must be a whole number, and the value is too large or too small; see --help",
		"--threads=-1":                   "--threads=-1 is refused: it must be a whole number that is not negative; see --help",
		"--qps=x":                        "--qps=x is refused: it must be a number; see --help",
		"--timeout=5":                    "--timeout=5 is refused: it must be a duration with its unit, such as 10s or 1m30s; see --help",
		"--election=maybe":               "--election=maybe is refused: it must be true or false; see --help",
		"--feature-gates=Topology=maybe": "--feature-gates=Topology=maybe is refused: it must be a list such as HonorPVReclaimPolicy=true, with true or false for each, separated by commas; see --help",
		"--feature-gates=Topology":       "--feature-gates=Topology is refused: it must be a list such as HonorPVReclaimPolicy=true, with true or false for each, separated by commas; see --help",
		"--address=x":                    "--address=x is refused: it must be an IP address, such as 127.0.0.1; see --help",
		"--secrets=abc":                  "--secrets=abc is refused: abc must be formatted as key=value; see --help",
		"--workers":                      "--workers has no value; give it as --workers=VALUE, which must be a whole number; see --help",
		"--secrets":                      "--secrets has no value; give it as --secrets=VALUE, which must be of the form stringToString; see --help",
		"-v":                             "--v has no value; give it as --v=VALUE, which must be a whole number; see --help",
		"-v=abc":                         "--v=abc is refused: it must be a whole number; see --help",
		"-x":                             "there is no flag -x; names have two dashes, as --NAME=VALUE; --help lists all",
		"-workers=5":                     "there is no flag -workers, but --workers; --help lists all",
		"--worker=5":                     "there is no flag --worker; --help lists all",
		"--frobnicate":                   "there is no flag --frobnicate; --help lists all",
		"---x":                           "---x is not a flag; a flag is given as --NAME=VALUE; --help lists all",
		"--=x":                           "--=x is not a flag; a flag is given as --NAME=VALUE; --help lists all",
	} {
		flags := pflag.NewFlagSet("program", pflag.ContinueOnError)
		flags.Int("workers", 1, "")
		flags.Uint("threads", 1, "")
		flags.Float32("qps", 1, "")
		flags.Duration("timeout", time.Second, "")
		flags.Bool("election", false, "")
		flags.IP("address", nil, "")
		flags.Var(cliflag.NewMapStringBool(&map[string]bool{}), "feature-gates", "")
		flags.StringToString("secrets", nil, "")
		flags.IntP("v", "v", 0, "")
		if err := ExplainFlag(flags, flags.Parse([]string{given}), "--help"); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", given, err, want)
		}
	}
}

func TestOtherErrorsAreUnchanged(t *testing.T) {
	other := errors.New("other")
	if err := ExplainFlag(pflag.NewFlagSet("program", pflag.ContinueOnError), other, "--help"); !errors.Is(err, other) {
		t.Errorf("error %v, want it unchanged", err)
	}
}
