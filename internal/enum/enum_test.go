package enum_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/internal/enum"
)

func TestName(t *testing.T) {
	for value, want := range map[int]string{-1: "invalid(-1)", 0: "Zero", 1: "One", 2: "invalid(2)"} {
		if got := enum.Name(value, "Zero", "One"); got != want {
			t.Errorf("Name(%d) = %q, want %q", value, got, want)
		}
	}
}
