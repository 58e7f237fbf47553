package printer

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// escapeJSON escapes what is not printable in encoded JSON. Such characters are in its
// strings only. encoding/json escapes some control characters, and no format characters.
func escapeJSON(text []byte) []byte {
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

// visibleRune returns the replacement character for what is not printable: YAML would print
// format characters as they are.
func visibleRune(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	return utf8.RuneError
}
