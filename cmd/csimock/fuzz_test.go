package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// A topology that is accepted has the same segments when it is written and read again.
func FuzzTopology(f *testing.F) {
	f.Add("zone=a,rack=1")
	f.Add("=")
	f.Add("a=b=c,a=d,")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := parseTopologies([]string{text})
		if err != nil {
			return
		}
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(first[0])) {
			pairs = append(pairs, key+"="+first[0][key])
		}
		second, err := parseTopologies([]string{strings.Join(pairs, ",")})
		if err != nil || !maps.Equal(first[0], second[0]) {
			t.Errorf("topology %q is %q, after a round trip %q (%v)", text, first, second, err)
		}
	})
}
