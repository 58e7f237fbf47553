package terminal

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// Printed text is valid UTF-8 in one line without control characters, and is not changed
// a second time.
func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"", "claim ns/p0", "\x1b[2J", "a\u202eb", "line\nline", "\xff\xfe", "\u2028\u2029", "日本"} {
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

// Wrapped lines have all words in order, and exceed the width only by a single long word.
func FuzzWrap(f *testing.F) {
	f.Add("a volume that waits for its claim", 10)
	f.Add("", 0)
	f.Add("averylongword and\tmore", -1)
	f.Fuzz(func(t *testing.T, text string, width int) {
		lines := Wrap(text, width)
		if got, want := strings.Join(lines, " "), strings.Join(strings.Fields(text), " "); got != want {
			t.Errorf("Wrap(%q, %d) has the words %q", text, width, got)
		}
		for _, line := range lines {
			if line == "" || utf8.RuneCountInString(line) > width && len(strings.Fields(line)) > 1 {
				t.Errorf("Wrap(%q, %d) has the line %q", text, width, line)
			}
		}
	})
}

// The closest word is one of the candidates, an equal candidate wins, and the distance is
// symmetric and zero for equal words only.
func FuzzClosest(f *testing.F) {
	f.Add("persistentvolum", "persistentvolume,pod,pv")
	f.Add("", "")
	f.Add("PV", "pv,vp")
	f.Add("\xff", "\xfe,é")
	f.Fuzz(func(t *testing.T, word, list string) {
		if len(word) > 200 || len(list) > 400 {
			return // the cost is their product
		}
		candidates := strings.Split(list, ",")
		got := Closest(word, candidates)
		if got != "" && !slices.Contains(candidates, got) {
			t.Errorf("Closest(%q, %q) = %q", word, list, got)
		}
		if slices.Contains(candidates, word) && !strings.EqualFold(got, word) {
			t.Errorf("Closest(%q, %q) = %q", word, list, got)
		}
		for _, candidate := range candidates {
			there, back := distance(word, candidate), distance(candidate, word)
			longest, difference := max(len(word), len(candidate)), len(word)-len(candidate)
			if there != back || (there == 0) != (word == candidate) || there > longest || there < max(difference, -difference) {
				t.Errorf("distance of %q and %q = %d, back %d", word, candidate, there, back)
			}
		}
	})
}
