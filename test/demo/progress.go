package demo

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Progress prints what is being started and how long that took.
type Progress struct {
	// Out is where the progress is printed.
	Out io.Writer
}

// Do calls do, and prints what and the time that do took. If ctx ended, the start was
// stopped and did not fail.
func (p Progress) Do(ctx context.Context, what string, do func(context.Context) error) error {
	fmt.Fprintf(p.Out, "%s ... ", what)
	begun := time.Now()
	err := do(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(p.Out, "stopped")
		return err
	case err != nil:
		fmt.Fprintln(p.Out, "failed")
		return err
	}
	fmt.Fprintf(p.Out, "%.1f s\n", time.Since(begun).Seconds())
	return nil
}
