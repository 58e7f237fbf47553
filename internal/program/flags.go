package program

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/internal/program/flagerrors"
)

// RefuseFlags registers flags that other programs have and that make no sense here.
// Whoever gives one is told why and what to do instead; they are not listed by
// --help.
func RefuseFlags(flags *pflag.FlagSet, why string, names ...string) {
	for _, name := range names {
		flag := flags.VarPF(refused{name: name, why: why}, name, "", why)
		flag.Hidden = true
		flag.NoOptDefVal = "true" // so that the refusal comes before any complaint about the value
	}
}

// RefusalReason says why a flag makes no sense here, and false for one that is served.
func RefusalReason(flag *pflag.Flag) (why string, refusal bool) {
	value, refusal := flag.Value.(refused)
	return value.why, refusal
}

// refused is the value of a flag that takes none.
type refused struct{ name, why string }

func (refused) String() string { return "" }
func (refused) Type() string   { return "" }

// Set always fails.
func (r refused) Set(string) error {
	return refusedError{fmt.Sprintf("--%s is refused: %s", r.name, r.why)}
}

type refusedError struct{ sentence string }

func (e refusedError) Error() string { return e.sentence }

// flagError makes a sentence of what is wrong with a command line.
func flagError(flags *pflag.FlagSet, err error) error {
	var refusal refusedError
	if errors.As(err, &refusal) {
		return refusal
	}
	return flagerrors.Explain(flags, err, "--help")
}
