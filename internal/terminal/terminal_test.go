package terminal_test

import (
	"slices"
	"testing"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

func TestPrintable(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"plain":             {"pvc-1 ä \U0001F4BE", "pvc-1 ä \U0001F4BE"},
		"escape sequence":   {"a\x1b[2Jb", "a [2Jb"},
		"lines and tabs":    {"a\nb\tc\rd", "a b c d"},
		"C1 controls":       {"a\u009bb", "a b"},
		"reversed text":     {"a\u202eb", "a b"},
		"line separator":    {"a\u2028b", "a b"},
		"not valid UTF-8":   {"a\xffb", "a\uFFFDb"},
		"zero width joiner": {"a\u200db", "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := terminal.Printable(tc.text); got != tc.want {
				t.Errorf("Printable(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestWrap(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"empty":     {"", nil},
		"one line":  {"aa bb", []string{"aa bb"}},
		"two lines": {"aa bb cc", []string{"aa bb", "cc"}},
		"long word": {"aa bbbbbbb c", []string{"aa", "bbbbbbb", "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := terminal.Wrap(tc.text, 5); !slices.Equal(got, tc.want) {
				t.Errorf("Wrap(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

func TestJSONHasNoControlCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"a\": \"\u009b2J\u202e\"\n}": "{\n  \"a\": \"\\u009b2J\\u202e\"\n}", "\"\U000e0001\"": `"\udb40\udc01"`,
		`"ä"`: `"ä"`,
	} {
		if got := string(terminal.EscapeJSON([]byte(text))); got != want {
			t.Errorf("EscapeJSON(%q) = %s, want %s", text, got, want)
		}
	}
}
