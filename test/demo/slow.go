package demo

import (
	"context"
	"io"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The pauses before the lines of a slow timeline.
const (
	stepPause = 2500 * time.Millisecond
	linePause = 800 * time.Millisecond
	// queued is the number of events that wait to be printed.
	queued = 4096
)

// NewSlowTextPrinter returns a printer for people who watch. It pauses before each line, and
// never makes the programs wait. It prints nothing more once ctx ends.
func NewSlowTextPrinter(ctx context.Context, out io.Writer, colored bool) Printer {
	pause := func(length time.Duration) { sandbox.Pause(ctx, length) }
	return &slowPrinter{ctx: ctx, textPrinter: textPrinter{out: out, paint: newPaint(colored), pause: pause}}
}

// slowPrinter prints the events of a run from a goroutine of its own.
type slowPrinter struct {
	textPrinter
	ctx    context.Context
	events chan Event
	done   chan error
}

// Begin announces a run and starts to print its events.
func (p *slowPrinter) Begin(gate bool) error {
	p.events, p.done = make(chan Event, queued), make(chan error, 1)
	if err := p.textPrinter.Begin(gate); err != nil {
		return err
	}
	go func() { p.done <- p.printQueued() }()
	return nil
}

// printQueued prints events until the run ends or ctx ends.
func (p *slowPrinter) printQueued() (err error) {
	for event := range p.events {
		if err == nil && p.ctx.Err() == nil {
			err = p.textPrinter.Event(event)
		}
	}
	return err
}

// Event queues a line of the timeline.
func (p *slowPrinter) Event(event Event) error {
	p.events <- event
	return nil
}

// End waits until all events are printed, and shows the result of the run.
func (p *slowPrinter) End(outcome Outcome) error {
	close(p.events)
	if err := <-p.done; err != nil {
		return err
	}
	p.pause(stepPause)
	return p.textPrinter.End(outcome)
}
