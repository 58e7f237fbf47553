package suggest

import (
	"slices"
	"strings"
	"testing"
)

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
