package terminal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// ExplainFlag returns an error of pflag as one sentence: what was given, and what to give instead. The
// errors of pflag quote its parser. help is the command that lists the flags. Other errors are returned
// unchanged.
func ExplainFlag(flags *pflag.FlagSet, err error, help string) error {
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
		noValue *pflag.ValueRequiredError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return unknownShorthand(flags, unknown.GetSpecifiedShortnames(), help)
	case errors.As(err, &unknown):
		return fmt.Errorf("there is no flag --%s; %s lists all", unknown.GetSpecifiedName(), help)
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s=%s is refused: %s; see %s", invalid.GetFlag().Name, invalid.GetValue(), reason(invalid), help)
	case errors.As(err, &noValue):
		return fmt.Errorf("--%s has no value; give it as --%s=VALUE, which %s; see %s", noValue.GetFlag().Name,
			noValue.GetFlag().Name, requirement(noValue.GetFlag()), help)
	case errors.As(err, &syntax):
		return fmt.Errorf("%s is not a flag; a flag is given as --NAME=VALUE; %s lists all", syntax.GetSpecifiedFlag(), help)
	}
	return err
}

// unknownShorthand returns the error for a flag with one dash. The error suggests the flag
// with two dashes if that exists.
func unknownShorthand(flags *pflag.FlagSet, given, help string) error {
	name, _, _ := strings.Cut(given, "=")
	if flags.Lookup(name) != nil {
		return fmt.Errorf("there is no flag -%s, but --%s; %s lists all", name, name, help)
	}
	return fmt.Errorf("there is no flag -%s; names have two dashes, as --NAME=VALUE; %s lists all", name, help)
}

// reason returns why a value is refused: in our words for types of valuesOf, otherwise in
// the words of the flag's own parser.
func reason(invalid *pflag.InvalidValueError) string {
	flag := invalid.GetFlag()
	switch {
	case errors.Is(invalid, strconv.ErrRange):
		return fmt.Sprintf("it %s, and the value is too large or too small", requirement(flag))
	case valuesOf(flag) != "":
		return "it " + requirement(flag)
	}
	return errors.Unwrap(invalid).Error()
}

func requirement(flag *pflag.Flag) string {
	if values := valuesOf(flag); values != "" {
		return "must be " + values
	}
	return "must be of the form " + flag.Value.Type()
}

// valuesOf describes the valid values of a flag, "" for types with their own error messages.
func valuesOf(flag *pflag.Flag) string {
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
		return "a duration with its unit, such as 10s or 1m30s"
	case "mapStringBool":
		return "a list such as " + exampleKey(flag) + "=true, with true or false for each, separated by commas"
	case "ip":
		return "an IP address, such as 127.0.0.1"
	case "string":
		return "a text"
	}
	return ""
}

func exampleKey(flag *pflag.Flag) string {
	if flag.Name == "feature-gates" {
		return "HonorPVReclaimPolicy"
	}
	return "NAME"
}
