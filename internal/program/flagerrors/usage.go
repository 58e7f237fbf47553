package flagerrors

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Sentence says what is wrong with a command line. Help is the command that lists
// the flags. What is no error of the flag library is returned as it is.
func Sentence(flags *pflag.FlagSet, err error, help string) error {
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
		bare    *pflag.ValueRequiredError
		garbled *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return noLetter(flags, unknown.GetSpecifiedShortnames(), help)
	case errors.As(err, &unknown):
		return noFlag(flags, unknown.GetSpecifiedName(), help)
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s=%s is refused: %s; see %s", invalid.GetFlag().Name, invalid.GetValue(), flaw(invalid), help)
	case errors.As(err, &bare):
		return fmt.Errorf("--%s has no value; give it as --%s=VALUE, which %s; see %s", bare.GetFlag().Name, bare.GetFlag().Name, must(bare.GetFlag()), help)
	case errors.As(err, &garbled):
		return fmt.Errorf("%s is no flag; one is given as --NAME=VALUE; %s lists all", garbled.GetSpecifiedFlag(), help)
	}
	return err
}

func noFlag(flags *pflag.FlagSet, name, help string) error {
	if nearest := nearestFlag(flags, name); nearest != "" {
		return fmt.Errorf("there is no flag --%s; did you mean --%s? %s lists all", name, nearest, help)
	}
	return fmt.Errorf("there is no flag --%s; %s lists all", name, help)
}

// noLetter is about what follows a single dash: most often a name that lacks one.
func noLetter(flags *pflag.FlagSet, given, help string) error {
	name, _, _ := strings.Cut(given, "=")
	if nearest := nearestFlag(flags, name); nearest != "" && len(name) > 1 {
		return fmt.Errorf("there is no flag -%s; did you mean --%s? %s lists all", name, nearest, help)
	}
	return fmt.Errorf("there is no flag -%s; names have two dashes, as --NAME=VALUE; %s lists all", name, help)
}

// flaw is what is wrong with a value. Flags that have a syntax of their own say it
// themselves.
func flaw(invalid *pflag.InvalidValueError) string {
	flag := invalid.GetFlag()
	switch {
	case errors.Is(invalid, strconv.ErrRange):
		return fmt.Sprintf("it %s, and this one is too large or too small", must(flag))
	case expects(flag) != "":
		return "it " + must(flag)
	}
	return errors.Unwrap(invalid).Error()
}

func must(flag *pflag.Flag) string {
	if what := expects(flag); what != "" {
		return "must be " + what
	}
	return "must be of the form " + flag.Value.Type()
}

// expects describes the values of a flag, "" if its type does not tell.
func expects(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "int", "int32", "int64":
		return "a whole number"
	case "uint", "uint8", "uint16", "uint32", "uint64", "Level":
		return "a whole number that is not negative"
	case "float32", "float64":
		return "a number"
	case "bool", "boolFunc":
		return "true or false"
	case "duration":
		return "a time with its unit, such as 10s or 1m30s"
	case "mapStringBool":
		return "a list such as " + example(flag) + "=true, with true or false for each, and commas between"
	case "ip":
		return "an address, such as 127.0.0.1"
	case "string":
		return "a text"
	}
	return ""
}

func example(flag *pflag.Flag) string {
	if flag.Name == "feature-gates" {
		return "HonorPVReclaimPolicy"
	}
	return "NAME"
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
