package programs

import (
	"encoding/json"
	"strings"
	"testing"
)

// measured is a result of a story in the output.
type measured struct {
	Story, Pair string
	VolumesLeft int
	Unfinished  string
	Measures    []struct{ Name, Value string }
}

// resultsOf returns the results among the lines.
func resultsOf(t *testing.T, output []byte) []measured {
	t.Helper()
	var results []measured
	for line := range strings.Lines(string(output)) {
		var fields map[string]any
		var result measured
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if _, is := fields["volumesLeft"]; !is {
			continue
		}
		if err := json.Unmarshal([]byte(line), &result); err != nil {
			t.Fatal(err)
		}
		results = append(results, result)
	}
	return results
}

// Each story is played by both pairs. Ours leaves nothing, and the killed csi-provisioner leaves
// the volume that it was creating.
func TestStoriesAgainstUpstream(t *testing.T) {
	t.Parallel()
	temporary := shortTemp(t)
	output, err := demo(t, temporary, "--against=upstream", "--volumes=10", "-o", "json").Output()
	if err != nil {
		t.Fatalf("the demo failed: %v\n%s", err, output)
	}
	left := map[string]int{}
	for _, result := range resultsOf(t, output) {
		if result.Unfinished != "" {
			t.Errorf("%s by %s: %s", result.Story, result.Pair, result.Unfinished)
		}
		left[result.Story+" by "+result.Pair] = result.VolumesLeft
		for _, measure := range result.Measures {
			if measure.Name == "" || measure.Value == "" || measure.Value == "0" {
				t.Errorf("%s by %s: measure %+v", result.Story, result.Pair, measure)
			}
		}
	}
	for _, story := range []string{"killed", "pv-first", "pvc-first", "namespace"} {
		ours, played := left[story+" by ours"]
		upstream, alsoPlayed := left[story+" by upstream"]
		if !played || !alsoPlayed || ours != 0 || story == "killed" && upstream != 1 {
			t.Errorf("%s: %d left by ours (%t), %d by upstream (%t)", story, ours, played, upstream, alsoPlayed)
		}
	}
	expectEmpty(t, temporary)
}
