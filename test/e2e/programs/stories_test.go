package programs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
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

// Each story is run by both pairs. Ours leaves nothing. The killed csi-provisioner leaves the
// volume that it was creating, and in the policy race it leaves each volume that is deleted before
// it has added its finalizer.
func TestStoriesAgainstUpstream(t *testing.T) {
	t.Parallel()
	temporary := shortTemp(t)
	command := demo(t, temporary, "--against=upstream", "--volumes=10", "-o", "json")
	var progress strings.Builder
	command.Stderr = &progress
	output, err := command.Output()
	if err != nil {
		t.Fatalf("the demo failed: %v\n%s%s", err, progress.String(), output)
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
	leaks := map[string]bool{"killed": true, "policy-race": true}
	for _, story := range storiesRun(t, progress.String()) {
		ours, ran := left[story+" by ours"]
		upstream, alsoRan := left[story+" by upstream"]
		if !ran || !alsoRan || ours != 0 || leaks[story] && upstream == 0 || story == "killed" && upstream != 1 {
			t.Errorf("%s: %d left by ours (%t), %d by upstream (%t)", story, ours, ran, upstream, alsoRan)
		}
	}
	expectEmpty(t, temporary)
}

// storiesRun returns the stories that are run on this version of Kubernetes. Without the
// admission policy the race is left out, with a sentence.
func storiesRun(t *testing.T, progress string) []string {
	t.Helper()
	all := []string{"killed", "policy-race", "pv-first", "pvc-first", "namespace"}
	if harness.ServesAdmissionPolicy() {
		return all
	}
	harness.Lack(t, "the admission policy")
	if !strings.Contains(progress, "has no MutatingAdmissionPolicy, so the story policy-race is left out") {
		t.Errorf("it does not say which story is left out: %s", progress)
	}
	return slices.DeleteFunc(all, func(story string) bool { return story == "policy-race" })
}
