package terminal

import (
	"bytes"
	"testing"
)

func TestColorIsForTerminals(t *testing.T) {
	for name, tc := range map[string]struct {
		terminal    bool
		environment map[string]string
		want        bool
	}{
		"a terminal has color":            {true, map[string]string{"TERM": "xterm"}, true},
		"a file has none":                 {false, map[string]string{"TERM": "xterm"}, false},
		"NO_COLOR is respected":           {true, map[string]string{"NO_COLOR": "1"}, false},
		"an empty NO_COLOR says nothing":  {true, map[string]string{"NO_COLOR": ""}, true},
		"a dumb terminal cannot show it":  {true, map[string]string{"TERM": "dumb"}, false},
		"a file has it if forced":         {false, map[string]string{"TERM": "dumb", "CLICOLOR_FORCE": "1"}, true},
		"CLICOLOR_FORCE=0 forces nothing": {false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		"NO_COLOR is stronger than force": {true, map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wantsColor(tc.terminal, func(key string) string { return tc.environment[key] }); got != tc.want {
				t.Errorf("wantsColor = %v, want %v", got, tc.want)
			}
		})
	}
	for forced, want := range map[string]bool{"": false, "1": true} {
		t.Setenv("CLICOLOR_FORCE", forced)
		t.Setenv("NO_COLOR", "")
		if got := SupportsColor(&bytes.Buffer{}); got != want {
			t.Errorf("with CLICOLOR_FORCE=%s SupportsColor of a buffer is %t, want %t", forced, got, want)
		}
	}
}
