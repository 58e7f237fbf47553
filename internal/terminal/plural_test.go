package terminal_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

func TestNumbersInSentences(t *testing.T) {
	for n, want := range map[int]string{0: "0 volumes", 1: "1 volume", 5000: "5000 volumes"} {
		if got := terminal.Count(n, "volume"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int32]string{0: "once", 1: "once", 3: "3 times"} {
		if got := terminal.Times(n); got != want {
			t.Errorf("Times(%d) = %q, want %q", n, got, want)
		}
	}
}
