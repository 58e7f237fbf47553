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
	flags.Var(v, "version", "print the version and exit; --version=raw prints all build information")
	flags.Lookup("version").NoOptDefVal = "true"
}

func (v *versionFlag) String() string { return string(*v) }
func (*versionFlag) Type() string     { return "version" }

// Set refuses a version such as v1.36.0: kube-controller-manager accepts it, and reports it as its own.
func (v *versionFlag) Set(text string) error {
	if text == "raw" {
		*v = "raw"
		return nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return refusedError{fmt.Sprintf("--version=%s is refused: the version of the build cannot be changed; give --version or --version=raw", text)}
	}
	*v = versionFlag(strconv.FormatBool(on))
	return nil
}

// print prints the version if --version asks for it. The program must not start then.
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
