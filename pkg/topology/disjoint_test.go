package topology

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// in is a term that demands one of the values.
func in(key string, values ...string) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}}}
}

func reachedBy(terms ...v1.NodeSelectorTerm) *v1.VolumeNodeAffinity {
	return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: terms}}
}

func TestDisjoint(t *testing.T) {
	not := in("host", "a")
	not.MatchExpressions[0].Operator = v1.NodeSelectorOpNotIn
	both := in("zone", "1")
	both.MatchExpressions = append(both.MatchExpressions, in("host", "a").MatchExpressions...)
	for name, tc := range map[string]struct {
		a, b *v1.VolumeNodeAffinity
		want bool
	}{
		"different nodes":                {reachedBy(in("host", "a")), reachedBy(in("host", "b")), true},
		"the same node":                  {reachedBy(in("host", "a")), reachedBy(in("host", "a")), false},
		"one node in common":             {reachedBy(in("host", "a", "b")), reachedBy(in("host", "b", "c")), false},
		"different labels":               {reachedBy(in("host", "a")), reachedBy(in("zone", "1")), false},
		"one term of several overlaps":   {reachedBy(in("host", "a"), in("host", "b")), reachedBy(in("host", "b")), false},
		"no term of several overlaps":    {reachedBy(in("host", "a"), in("host", "c")), reachedBy(in("host", "b")), true},
		"one of several labels differs":  {reachedBy(both), reachedBy(in("host", "b")), true},
		"an operator other than In":      {reachedBy(in("host", "a")), reachedBy(not), false},
		"the first is reached by all":    {nil, reachedBy(in("host", "b")), false},
		"the second is reached by all":   {reachedBy(in("host", "a")), nil, false},
		"the second demands nothing":     {reachedBy(in("host", "a")), &v1.VolumeNodeAffinity{}, false},
		"a term without any requirement": {reachedBy(in("host", "a")), reachedBy(v1.NodeSelectorTerm{}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Disjoint(tc.a, tc.b); got != tc.want {
				t.Errorf("Disjoint = %v, want %v", got, tc.want)
			}
			if got := Disjoint(tc.b, tc.a); got != tc.want {
				t.Errorf("Disjoint of both swapped = %v, want %v", got, tc.want)
			}
		})
	}
}
