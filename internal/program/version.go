package program

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/component-base/version"
)

// versionFlag is the value of --version: false, true or raw.
type versionFlag string

func (v *versionFlag) add(flags *pflag.FlagSet) {
	flags.Var(v, "version", "print the version and end; --version=raw prints all that is known of the build")
	flags.Lookup("version").NoOptDefVal = "true"
}

func (v *versionFlag) String() string { return string(*v) }
func (*versionFlag) Type() string     { return "version" }

// Set refuses what kube-controller-manager takes besides: a version to pretend.
func (v *versionFlag) Set(text string) error {
	if text == "raw" {
		*v = "raw"
		return nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return refusedError{fmt.Sprintf("--version=%s is refused: the version is the one that was built; give --version or --version=raw", text)}
	}
	*v = versionFlag(strconv.FormatBool(on))
	return nil
}

// print says which version the program is, if that was asked for.
func (v *versionFlag) print(out io.Writer, program string) (printed bool, err error) {
	switch *v {
	case "true":
		_, err = fmt.Fprintf(out, "%s version %s\n", program, version.Get())
	case "raw":
		_, err = fmt.Fprintf(out, "%#v\n", version.Get())
	default:
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("print version: %w", err)
	}
	return true, nil
}
