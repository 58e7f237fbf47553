package main

// The exit codes of commands that explain and audit. Of several results the highest
// counts.
const (
	exitError   = 1
	exitRefused = 4
)

// exitCode is an error with the exit code that it stands for. err is nil if the output of
// the command tells everything.
type exitCode struct {
	code int
	err  error
}

func (e exitCode) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exitCode) Unwrap() error { return e.err }
