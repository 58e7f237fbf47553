package terminal

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Printed text is valid UTF-8 in one line without control characters, and is not changed
// a second time.
func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"", "claim ns/p0", "\x1b[2J", "a\u202eb", "line\nline", "\xff\xfe", "\u2028\u2029",
		"日本"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		if !utf8.ValidString(got) {
			t.Errorf("Printable(%q) = %q, which is not UTF-8", text, got)
		}
		unsafe := func(r rune) bool {
			return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
		}
		if strings.ContainsFunc(got, unsafe) {
			t.Errorf("Printable(%q) = %q, which can control a terminal", text, got)
		}
		if again := Printable(got); again != got {
			t.Errorf("Printable(%q) = %q, the second time %q", text, got, again)
		}
	})
}
