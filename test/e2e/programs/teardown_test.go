package programs

import (
	"maps"
	"strings"
	"testing"
)

// What the ways leave is what the story is about: a way that left the kept disk only would need no program of ours.
func TestOnlyTeardownLeavesExactlyTheKeptDisk(t *testing.T) {
	t.Parallel()
	temporary := shortTemp(t)
	command := demo(t, temporary, "--story=teardown", "-o", "json")
	var progress strings.Builder
	command.Stderr = &progress
	output, err := command.Output()
	if err != nil {
		t.Fatalf("the demo failed: %v\n%s%s", err, progress.String(), output)
	}
	left := map[string]map[string]string{}
	for _, result := range resultsOf(t, output) {
		left[result.Pair] = map[string]string{}
		for _, measure := range result.Measures {
			if measure.Name != "seconds until the machines are deleted" {
				left[result.Pair][measure.Name] = measure.Value
			}
		}
	}
	for name, want := range map[string]map[string]string{
		"machines": {"disk to keep": "there", "other disks left": "3", "snapshots left": "1", "load balancers left": "3"},
		"services": {"disk to keep": "there", "other disks left": "3", "snapshots left": "1", "load balancers left": "0"},
		"script":   {"disk to keep": "there", "other disks left": "1", "snapshots left": "1", "load balancers left": "3"},
		"ours":     {"disk to keep": "there", "other disks left": "0", "snapshots left": "0", "load balancers left": "0"},
	} {
		if !maps.Equal(left[name], want) {
			t.Errorf("%s: %v, want %v", name, left[name], want)
		}
	}
	expectEmpty(t, temporary)
}
