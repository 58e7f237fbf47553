// Package terminal is how programs talk to whoever started them: flags and arguments that are wrong, exit
// codes, colors, and text from a cluster that is safe to print.
package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Printable replaces control characters, line ends and invisible format characters by spaces:
// an object must not control the terminal, nor pretend to be another line of the output.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// EscapeJSON escapes what is not printable in encoded JSON. Such characters are in its
// strings only. encoding/json escapes some control characters, and no format characters.
func EscapeJSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return text // documents have tens of megabytes
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// Columns is the width of text that no terminal shows.
const Columns = 80

// least is the narrowest text: a tree needs room for its words.
const least = 40

// WidthOf returns the width of the terminal that out is, Columns if it is none.
func WidthOf(out io.Writer) int {
	file, isFile := out.(*os.File)
	if !isFile {
		return Columns
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 {
		return Columns
	}
	return max(width, least)
}

// Narrowed returns the widths of a table's columns so that they and a space between them fit. The widest
// is narrowed first, and none below the width of a short word.
func Narrowed(widths []int, columns int) []int {
	const shortest = 5
	narrow := slices.Clone(widths)
	total := len(narrow) - 1
	for _, width := range narrow {
		total += width
	}
	for ; total > columns; total-- {
		widest := slices.Index(narrow, slices.Max(narrow))
		if narrow[widest] <= shortest {
			break
		}
		narrow[widest]--
	}
	return narrow
}

// Wrap breaks the text at spaces into lines of at most width characters, where its words
// allow that.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
