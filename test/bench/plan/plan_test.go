package plan_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/exeunt-io/exeunt/test/bench/plan"
)

func TestEachRoundBeginsWithAnotherSide(t *testing.T) {
	var got []Side
	for _, turn := range (Scenario{}).Turns(3) {
		got = append(got, turn.Side)
		if want := (len(got)-1)/3 + 1; turn.Round != want {
			t.Errorf("turn %d is of round %d, want %d", len(got), turn.Round, want)
		}
	}
	want := []Side{Ours, Upstream, Ceiling, Upstream, Ceiling, Ours, Ceiling, Ours, Upstream}
	if !slices.Equal(got, want) {
		t.Errorf("turns %v, want %v", got, want)
	}
}

func TestChoose(t *testing.T) {
	table := []Scenario{
		{Name: "large", Size: 10, Background: 500},
		{Name: "quick", Size: 100, Others: 500},
		{Name: "long", Size: 1000, Full: true},
	}
	for name, tc := range map[string]struct {
		choice Choice
		want   []string
		size   int
	}{
		"without the long ones, by background": {Choice{}, []string{"quick", "large"}, 100},
		"full":                                 {Choice{Full: true}, []string{"quick", "long", "large"}, 100},
		"by name":                              {Choice{Full: true, Only: "^long$"}, []string{"long"}, 1000},
		"a trial":                              {Choice{Limit: 20}, []string{"quick", "large"}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := Choose(table, tc.choice)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range chosen {
				got = append(got, s.Name)
			}
			if !slices.Equal(got, tc.want) || chosen[0].Size != tc.size {
				t.Errorf("chose %v, the first of size %d, want %v and %d", got, chosen[0].Size, tc.want, tc.size)
			}
		})
	}
	if chosen, _ := Choose(table, Choice{Limit: 20}); chosen[0].Others != 100 || chosen[1].Background != 20 {
		t.Errorf("a trial has %d others and %d pairs, want 100 and 20", chosen[0].Others, chosen[1].Background)
	}
	for _, only := range []string{"nothing", "("} {
		if _, err := Choose(table, Choice{Only: only}); err == nil {
			t.Errorf("the name %q returned no error", only)
		}
	}
}

func TestScenariosAreWellFormed(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Scenarios() {
		if names[s.Name] || s.Name == "" {
			t.Errorf("the name %q is not unique", s.Name)
		}
		names[s.Name] = true
		if !slices.Contains(Topics(), s.Topic) {
			t.Errorf("%s has the unknown topic %q", s.Name, s.Topic)
		}
		if s.Garbage() && (s.Policy == "" || s.Kinds == 0) {
			t.Errorf("%s has no policy or no number of kinds", s.Name)
		}
		if s.Kind == Storm && s.Order == "" {
			t.Errorf("%s has no order", s.Name)
		}
	}
}

func TestClustersHaveOneNumberOfKinds(t *testing.T) {
	table := []Scenario{{Name: "many", Kinds: 500}, {Name: "few", Kinds: 60}, {Name: "full", Background: 10},
		{Name: "also few", Kinds: 60}, {Name: "empty"}}
	chosen, err := Choose(table, Choice{})
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, cluster := range Clusters(chosen) {
		var names []string
		for _, s := range cluster {
			names = append(names, s.Name)
		}
		got = append(got, names)
	}
	if diff := cmp.Diff([][]string{{"empty", "full"}, {"few", "also few"}, {"many"}}, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestTrialOfTreeKeepsItsShape(t *testing.T) {
	chosen, err := Choose([]Scenario{{Name: "tree", Size: 10_000, Inner: 100}}, Choice{Limit: 1_000})
	if err != nil || chosen[0].Inner != 10 {
		t.Errorf("a trial has %d inner nodes, %v", chosen[0].Inner, err)
	}
}
