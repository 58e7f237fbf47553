package printer

import (
	"unicode"
	"unicode/utf8"
)

// visibleRune returns the replacement character for what is not printable: YAML would print
// format characters as they are.
func visibleRune(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	return utf8.RuneError
}
