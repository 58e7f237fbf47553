package program

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Refuse registers flags that other programs have and that make no sense here.
// Whoever gives one is told why and what to do instead; they are not listed by
// --help.
func Refuse(flags *pflag.FlagSet, why string, names ...string) {
	for _, name := range names {
		flag := flags.VarPF(refused{name: name, why: why}, name, "", why)
		flag.Hidden = true
		flag.NoOptDefVal = "true" // so that the refusal comes before any complaint about the value
	}
}

// Refused says why a flag makes no sense here, and false for one that is served.
func Refused(flag *pflag.Flag) (why string, refusal bool) {
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
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	name := unknown.GetSpecifiedName()
	if nearest := nearestFlag(flags, name); nearest != "" {
		return fmt.Errorf("there is no flag --%s; did you mean --%s? --help lists all", name, nearest)
	}
	return fmt.Errorf("there is no flag --%s; --help lists all", name)
}

// nearestFlag is the flag whose name differs least from the one given, "" if none
// is near.
func nearestFlag(flags *pflag.FlagSet, name string) string {
	best, least := "", min(4, 1+len(name)/3)
	flags.VisitAll(func(flag *pflag.Flag) {
		if d := distance(flag.Name, strings.ToLower(name)); d < least {
			best, least = flag.Name, d
		}
	})
	return best
}

// distance is the number of characters to insert, delete or replace that makes one
// word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
