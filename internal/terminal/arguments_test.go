package terminal

import "testing"

func TestClosest(t *testing.T) {
	candidates := []string{"DriverRefuses", "DriverMissing", "InUse", "pods"}
	for word, want := range map[string]string{
		"DriverRefuse":   "DriverRefuses",
		"driverrefusess": "DriverRefuses",
		"DriveMising":    "DriverMissing",
		"inuse":          "InUse",
		"pod":            "pods",
		"pdos":           "pods",
		"volume":         "",
		"":               "",
	} {
		if got := Closest(word, candidates); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}
}
