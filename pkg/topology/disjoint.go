package topology

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Disjoint says whether certainly no node reaches both volumes: whichever two terms
// are picked, both demand a value of one label, and no value satisfies both.
func Disjoint(a, b *v1.VolumeNodeAffinity) bool {
	if a == nil || a.Required == nil || b == nil || b.Required == nil {
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

// contradict says whether no node satisfies both terms. Operators other than In are
// taken to be satisfied.
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
