package demo

// color is an SGR parameter of ECMA-48.
type color string

const (
	bold   color = "1"
	dim    color = "2"
	red    color = "31"
	green  color = "32"
	yellow color = "33"
	cyan   color = "36"
)

// colors are the colors of the actors; all other actors have none.
var colors = map[string]color{
	you:       bold,
	csiDriver: yellow,
	watched:   dim,
}

// paint returns the text in a color, or unchanged.
type paint func(c color, text string) string

// newPaint returns a paint that uses colors if colored is true.
func newPaint(colored bool) paint {
	if !colored {
		return func(_ color, text string) string { return text }
	}
	return func(c color, text string) string {
		if c == "" || text == "" {
			return text
		}
		return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
	}
}
