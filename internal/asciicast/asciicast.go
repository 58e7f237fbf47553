package asciicast

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"time"
	"unicode/utf8"
)

// Line is a line of output without its end, and the time since the start of the command.
type Line struct {
	At   time.Duration
	Text string
}

const (
	// minWidth and height are the size of the terminal in characters; longer lines widen it.
	minWidth, height = 80, 36
	// longestPause bounds the time between two lines.
	longestPause = 3 * time.Second
)

// header is the first line of a file.
type header struct {
	Version int    `json:"version"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	Title   string `json:"title"`
}

// Write writes a recording that begins with the command, as typed at a prompt.
func Write(out io.Writer, command string, lines []Line) error {
	lines = append([]Line{{Text: "$ " + command}}, shortenPauses(lines)...)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(header{Version: 2, Width: width(lines), Height: height, Title: command}); err != nil {
		return fmt.Errorf("write header: %w", err)
	}
	for _, line := range lines {
		seconds := float64(line.At.Round(time.Millisecond).Milliseconds()) / 1000
		if err := encoder.Encode([]any{seconds, "o", line.Text + "\r\n"}); err != nil {
			return fmt.Errorf("write line: %w", err)
		}
	}
	return nil
}

// shortenPauses cuts the time between two lines, and the time before the first line, to
// longestPause.
func shortenPauses(lines []Line) []Line {
	shortened := make([]Line, 0, len(lines))
	var before, cut time.Duration
	for _, line := range lines {
		cut += max(0, line.At-before-longestPause)
		before = line.At
		shortened = append(shortened, Line{line.At - cut, line.Text})
	}
	return shortened
}

// style matches the escape sequences that set colors.
var style = regexp.MustCompile("\x1b\\[[0-9;]*m")

// width returns the width of a terminal that breaks no line.
func width(lines []Line) int {
	widest := minWidth
	for _, line := range lines {
		widest = max(widest, utf8.RuneCountInString(style.ReplaceAllString(line.Text, "")))
	}
	return widest
}
