package main

import (
	"strings"
	"testing"
)

func TestLastLine(t *testing.T) {
	result := Result{Seed: 42, Volumes: 300, Faults: 90, Kills: 12, Leaked: []string{"a"}, Lost: []string{"b", "c"}}
	if got, want := result.LastLine(),
		"soak: seed 42, 300 volumes, 90 faults, 12 kills, leaked 1, stuck 0, lost 2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResultFails(t *testing.T) {
	for name, tc := range map[string]struct {
		result Result
		want   string
	}{
		"enough work":     {Result{Rate: 1}, ""},
		"too little work": {Result{Rate: 0.5}, "the run finished 0.50 volumes per second, and less than 1.00 do not count"},
		"leaked":          {Result{Rate: 2, Leaked: []string{"x"}}, "1 volumes or objects leaked, were stuck or lost"},
		"rule broken":     {Result{Rate: 2, Broken: []string{"x"}}, "1 rules of the model were broken"},
		"stuck and lost":  {Result{Rate: 2, Stuck: []string{"x"}, Lost: []string{"y"}}, "2 volumes or objects leaked, were stuck or lost"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.result.Err(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCountersSumAndPrint(t *testing.T) {
	c := newCounters()
	c.add(topicKills, "provisioner", 2)
	c.add(topicKills, "pv-controller", 1)
	c.add(topicVolumes, "static", 5)
	if kills, faults := c.sum(topicKills), c.sum(faultTopics...); kills != 3 || faults != 3 {
		t.Errorf("%d kills and %d faults, want 3 of each", kills, faults)
	}
	var printed strings.Builder
	c.print(&printed)
	if want := "kills                 3  provisioner 2, pv-controller 1\n"; !strings.Contains(printed.String(), want) {
		t.Errorf("printed without %q:\n%s", want, printed.String())
	}
}
