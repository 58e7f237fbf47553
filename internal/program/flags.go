package program

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// RefuseFlags registers flags of other programs that this program cannot serve. Setting
// one is an error that says why and what to do instead. --help does not list them.
func RefuseFlags(flags *pflag.FlagSet, why string, names ...string) {
	for _, name := range names {
		flag := flags.VarPF(refused{name: name, why: why}, name, "", why)
		flag.Hidden = true
		flag.NoOptDefVal = "true" // --flag without a value calls Set, too
	}
}

// RefusalReason returns why a flag is refused, and false for a flag that is served.
func RefusalReason(flag *pflag.Flag) (why string, refusal bool) {
	value, refusal := flag.Value.(refused)
	return value.why, refusal
}

// refused is the value of a refused flag.
type refused struct{ name, why string }

func (refused) String() string { return "" }
func (refused) Type() string   { return "" }

// Set always fails.
func (r refused) Set(string) error {
	return refusedError{fmt.Sprintf("--%s is refused: %s", r.name, r.why)}
}

// refusedError is the error of a value that is refused on purpose. Its sentence needs no explanation.
type refusedError struct{ sentence string }

func (e refusedError) Error() string { return e.sentence }

// flagError explains the error of a command line in one sentence. pflag wraps the error of Set.
func flagError(flags *pflag.FlagSet, err error) error {
	var refusal refusedError
	if errors.As(err, &refusal) {
		return refusal
	}
	return terminal.ExplainFlag(flags, err, "--help")
}
