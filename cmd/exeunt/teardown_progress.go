package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
)

// progress shows how far a teardown is: a terminal has one line for each phase, which is written again with each
// change, other output a line for each change.
type progress struct {
	out io.Writer
	// columns is the width of the terminal, 0 if out is none.
	columns int

	mu    sync.Mutex
	phase teardown.Phase
	text  string
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if file, is := out.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		p.columns = terminal.WidthOf(out)
	}
	return p
}

// show writes what has changed.
func (p *progress) show(now runner.Progress) {
	text := textOf(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	if text == p.text || now.Phase == teardown.NoPhase {
		return
	}
	defer func() { p.text, p.phase = text, now.Phase }()
	if p.columns == 0 {
		_, _ = fmt.Fprintln(p.out, text)
		return
	}
	before := "\r\x1b[K"
	if p.text != "" && now.Phase != p.phase {
		before = "\n"
	}
	if runes := []rune(text); len(runes) >= p.columns {
		text = string(runes[:p.columns-1])
	}
	_, _ = io.WriteString(p.out, before+text)
}

// end ends the line of a terminal.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.columns > 0 && p.text != "" {
		_, _ = fmt.Fprintln(p.out)
	}
	p.text = ""
}

// textOf is a progress in one line.
func textOf(now runner.Progress) string {
	words := []string{string(now.Phase)}
	var left []string
	for _, kind := range plan.Kinds {
		if count := now.Left[string(kind)]; count > 0 {
			left = append(left, plan.Counted(kind, count))
		}
	}
	if now.More > 0 {
		left = append(left, fmt.Sprintf("%d more", now.More))
	}
	if len(left) > 0 {
		words = append(words, strings.Join(left, ", ")+" left")
	}
	if now.Message != "" {
		words = append(words, now.Message)
	}
	if !now.Leading {
		words = append(words, "another runner does it, this one follows")
	}
	return terminal.Printable(strings.Join(words, ": "))
}
