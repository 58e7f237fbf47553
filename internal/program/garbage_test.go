package program

import (
	"runtime/debug"
	"testing"
)

func TestEnvironmentOverridesGCPercent(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for environment, want := range map[string]int{"": gcPercent, "200": 100} { // Go itself reads GOGC, at the start only
		t.Setenv("GOGC", environment)
		debug.SetGCPercent(100)
		CollectEarly()
		if got := debug.SetGCPercent(100); got != want {
			t.Errorf("GOGC=%q: %d percent, want %d", environment, got, want)
		}
	}
}
