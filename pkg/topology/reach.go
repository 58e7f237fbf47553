package topology

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Reaches says whether a node with these labels reaches a volume of that affinity.
// A driver that says nothing of its node reaches every volume.
func Reaches(node map[string]string, affinity *v1.VolumeNodeAffinity) bool {
	if len(node) == 0 || affinity == nil || affinity.Required == nil {
		return true
	}
	return slices.ContainsFunc(affinity.Required.NodeSelectorTerms, func(term v1.NodeSelectorTerm) bool {
		return matches(labels.Set(node), term)
	})
}

// matches says whether labels alone satisfy the term. The empty term matches nothing.
func matches(node labels.Set, term v1.NodeSelectorTerm) bool {
	if len(term.MatchExpressions) == 0 || len(term.MatchFields) > 0 {
		return false
	}
	for _, expression := range term.MatchExpressions {
		requirement, err := labels.NewRequirement(expression.Key, operators[expression.Operator], expression.Values)
		if err != nil || !requirement.Matches(node) {
			return false
		}
	}
	return true
}

var operators = map[v1.NodeSelectorOperator]selection.Operator{
	v1.NodeSelectorOpIn:           selection.In,
	v1.NodeSelectorOpNotIn:        selection.NotIn,
	v1.NodeSelectorOpExists:       selection.Exists,
	v1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	v1.NodeSelectorOpGt:           selection.GreaterThan,
	v1.NodeSelectorOpLt:           selection.LessThan,
}

// Allows says whether a class with these terms allows a volume in the place of a
// node with these labels.
func Allows(terms []v1.TopologySelectorTerm, node map[string]string) bool {
	places := allowed(terms)
	return len(places) == 0 || slices.ContainsFunc(places, func(place Place) bool { return place.Contains(node) })
}
