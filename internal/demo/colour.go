package demo

import (
	"io"
	"os"

	"golang.org/x/term"
)

// colour is how a terminal shows a text: an SGR parameter of ECMA-48.
type colour string

const (
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	cyan   colour = "36"
)

// colours are those of the actors; whoever is not in here has none.
var colours = map[string]colour{
	you:     bold,
	storage: yellow,
	watched: dim,
}

// paint returns text as it is, or in a colour.
type paint func(c colour, text string) string

// newPaint returns a paint that uses colour or does not.
func newPaint(coloured bool) paint {
	if !coloured {
		return func(_ colour, text string) string { return text }
	}
	return func(c colour, text string) string {
		if c == "" || text == "" {
			return text
		}
		return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
	}
}

// Coloured says whether what is written to out may have colour.
func Coloured(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && wantsColour(term.IsTerminal(int(file.Fd())), os.Getenv)
}

// wantsColour says whether to use colour: on a terminal that has it, unless the
// user sets NO_COLOR.
func wantsColour(terminal bool, getenv func(string) string) bool {
	return terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
