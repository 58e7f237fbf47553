package topology

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Reaches reports whether a node with the labels reaches a volume with the node
// affinity. A driver that reports no topology of its node reaches every volume.
func Reaches(node map[string]string, affinity *v1.VolumeNodeAffinity) bool {
	if len(node) == 0 || affinity == nil || affinity.Required == nil {
		return true
	}
	return slices.ContainsFunc(affinity.Required.NodeSelectorTerms, func(term v1.NodeSelectorTerm) bool {
		return matches(labels.Set(node), term)
	})
}

// matches reports whether the labels match the term. The empty term, and a term with
// fields, match no node.
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

// Allows reports whether a storage class with the allowed topologies allows a volume for
// a node with the labels.
func Allows(terms []v1.TopologySelectorTerm, node map[string]string) bool {
	segments := allowedSegments(terms)
	return len(segments) == 0 || slices.ContainsFunc(segments, func(s Segment) bool { return s.Contains(node) })
}
