package demo

import (
	"fmt"
	"io"
	"time"
)

// Progress prints what is being started and how long that took.
type Progress struct {
	// Out is where the progress is printed.
	Out io.Writer
}

// Do calls do, and prints what and the time that do took.
func (p Progress) Do(what string, do func() error) error {
	fmt.Fprintf(p.Out, "%s ... ", what)
	begun := time.Now()
	if err := do(); err != nil {
		fmt.Fprintln(p.Out, "failed")
		return err
	}
	fmt.Fprintf(p.Out, "%.1f s\n", time.Since(begun).Seconds())
	return nil
}
