package topology

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// in returns a term that requires one of the values.
func in(key string, values ...string) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn,
		Values: values}}}
}

func affinity(terms ...v1.NodeSelectorTerm) *v1.VolumeNodeAffinity {
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
		"different values":              {affinity(in("host", "a")), affinity(in("host", "b")), true},
		"equal values":                  {affinity(in("host", "a")), affinity(in("host", "a")), false},
		"common value":                  {affinity(in("host", "a", "b")), affinity(in("host", "b", "c")), false},
		"different labels":              {affinity(in("host", "a")), affinity(in("zone", "1")), false},
		"one term of several overlaps":  {affinity(in("host", "a"), in("host", "b")), affinity(in("host", "b")), false},
		"no term of several overlaps":   {affinity(in("host", "a"), in("host", "c")), affinity(in("host", "b")), true},
		"one of several labels differs": {affinity(both), affinity(in("host", "b")), true},
		"operator other than In":        {affinity(in("host", "a")), affinity(not), false},
		"first without affinity":        {nil, affinity(in("host", "b")), false},
		"second without affinity":       {affinity(in("host", "a")), nil, false},
		"second without requirement":    {affinity(in("host", "a")), &v1.VolumeNodeAffinity{}, false},
		"second without terms":          {affinity(in("host", "a")), affinity(), false},
		"empty term":                    {affinity(in("host", "a")), affinity(v1.NodeSelectorTerm{}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Disjoint(tc.a, tc.b); got != tc.want {
				t.Errorf("Disjoint = %v, want %v", got, tc.want)
			}
			if got := Disjoint(tc.b, tc.a); got != tc.want {
				t.Errorf("Disjoint with swapped arguments = %v, want %v", got, tc.want)
			}
		})
	}
}
