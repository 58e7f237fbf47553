package differential

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// intended has the intended differences and their reasons.
type intended struct {
	// Reasons has a sentence for each short name.
	Reasons map[string]string
	// Scenarios has the scenarios with differences.
	Scenarios []deviation
}

// deviation is a scenario whose outcome differs from upstream's.
type deviation struct {
	Scenario string
	// Why has names of reasons.
	Why     []string
	Differs []difference
}

func loadIntended() (*intended, error) {
	var all intended
	return &all, load(filepath.Join("testdata", "differences.yaml"), &all)
}

// of returns the differences of a scenario in the order of compare.
func (i *intended) of(scenario string) []difference {
	var all []difference
	for _, one := range i.Scenarios {
		if one.Scenario == scenario {
			all = append(all, one.Differs...)
		}
	}
	slices.SortFunc(all, func(a, b difference) int { return strings.Compare(a.What, b.What) })
	return all
}

func TestIntendedDifferencesHaveScenarioAndReason(t *testing.T) {
	all, err := scenarios()
	if err != nil {
		t.Fatal(err)
	}
	named, err := loadIntended()
	if err != nil {
		t.Fatal(err)
	}
	known, used := map[string]bool{}, map[string]bool{}
	for _, one := range all {
		if known[one.Name] {
			t.Errorf("two scenarios are called %q", one.Name)
		}
		known[one.Name] = true
	}
	for _, one := range named.Scenarios {
		if err := one.check(known, named.Reasons); err != nil {
			t.Error(err)
		}
		for _, why := range one.Why {
			used[why] = true
		}
	}
	for why := range named.Reasons {
		if !used[why] {
			t.Errorf("no scenario differs because of %q", why)
		}
	}
}

func (d deviation) check(scenarios map[string]bool, reasons map[string]string) error {
	switch {
	case !scenarios[d.Scenario]:
		return fmt.Errorf("there is no scenario %q", d.Scenario)
	case len(d.Differs) == 0 || len(d.Why) == 0:
		return fmt.Errorf("scenario %q: what differs, and why?", d.Scenario)
	}
	for _, why := range d.Why {
		if reasons[why] == "" {
			return fmt.Errorf("scenario %q: there is no reason %q", d.Scenario, why)
		}
	}
	return nil
}
