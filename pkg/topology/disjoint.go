package topology

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Disjoint reports whether certainly no node matches both node affinities: every term of
// one contradicts every term of the other. In doubt it returns false: two directories of one
// path count as one, and wait for each other. An affinity without terms, which the API server
// refuses, proves nothing.
func Disjoint(a, b *v1.VolumeNodeAffinity) bool {
	if a == nil || a.Required == nil || b == nil || b.Required == nil {
		return false
	}
	if len(a.Required.NodeSelectorTerms) == 0 || len(b.Required.NodeSelectorTerms) == 0 {
		return false
	}
	for _, termA := range a.Required.NodeSelectorTerms {
		for _, termB := range b.Required.NodeSelectorTerms {
			if !contradict(termA, termB) {
				return false
			}
		}
	}
	return true
}

// contradict reports whether no node matches both terms: both require a value of one label, and
// have no value in common. An expression with another operator than In contradicts nothing.
func contradict(a, b v1.NodeSelectorTerm) bool {
	for _, one := range a.MatchExpressions {
		for _, other := range b.MatchExpressions {
			if one.Key == other.Key && one.Operator == v1.NodeSelectorOpIn && other.Operator == v1.NodeSelectorOpIn &&
				!slices.ContainsFunc(one.Values, func(value string) bool { return slices.Contains(other.Values, value) }) {
				return true
			}
		}
	}
	return false
}
