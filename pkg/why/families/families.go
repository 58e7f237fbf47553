// Package families says which controller removes which finalizer: those of Kubernetes, of
// the CSI sidecars, of the snapshotter, and of widely used operators. Find looks a finalizer
// up. Of a finalizer that is not in the table, Attribute says which field managers own it,
// and Suspects which workload may work with it; both are hints, never a proof.
//
// A wrong row makes an administrator strip a finalizer while its controller lives. So a row
// has only what its Source confirms: a Lease, image or label that is not certain is left out.
package families

import (
	"slices"
	"strings"
)

// Family is a row of the table: finalizers that one controller removes.
type Family struct {
	// Name names the project, such as "Kubernetes" or "cert-manager".
	Name string
	// Finalizers are exact names, or patterns in which * stands for any text.
	Finalizers []string
	// Kinds are the kinds, as Kind or Kind.group, that carry the finalizers; empty for any.
	Kinds []string
	// Controller removes the finalizers.
	Controller Controller
	// Alternatives are further controllers that may remove the finalizers in its place, such as
	// pv-controller for kube-controller-manager. The controller is gone only if all are gone; an
	// alternative outside of the control plane that has neither workload nor Lease was never installed.
	Alternatives []Controller
	// When completes the sentence "the finalizer is removed when ...".
	When string
	// Alive says how to see that the controller lives.
	Alive string
	// Force says what is lost if the finalizer is removed by hand.
	Force string
	// Source links to the code or the documentation that sets the finalizer.
	Source string
}

// all is the table.
var all = slices.Concat(kubernetes, csi, storage, gitops, cloud, clusters, data, platform)

// Find returns the family of the finalizer on an object of the kind, and false if no row
// has the finalizer. Exact names win over patterns, rows with the kind over rows for any kind.
func Find(finalizer, kind, group string) (Family, bool) {
	best, score := Family{}, 0
	for _, family := range all {
		if s := family.score(finalizer, kind, group); s > score {
			best, score = family, s
		}
	}
	return best, score > 0
}

// Named returns the rows that have the finalizer, on any kind.
func Named(finalizer string) []Family {
	var found []Family
	for _, family := range all {
		if slices.ContainsFunc(family.Finalizers, func(pattern string) bool { return Match(pattern, finalizer) }) {
			found = append(found, family)
		}
	}
	return found
}

// All returns all rows.
func All() []Family { return all }

// Controllers returns the controller of the row and its alternatives.
func (f Family) Controllers() []Controller {
	return append([]Controller{f.Controller}, f.Alternatives...)
}

// score ranks how well the row fits, 0 if it does not: exact names over patterns, then rows
// with the kind over rows for any kind, then the pattern with the longest text.
func (f Family) score(finalizer, kind, group string) int {
	score := 0
	for _, pattern := range f.Finalizers {
		if pattern == finalizer {
			score = exactName
		} else if Match(pattern, finalizer) {
			score = max(score, 1+len(pattern)-strings.Count(pattern, "*"))
		}
	}
	switch {
	case score == 0 || len(f.Kinds) == 0:
		return score
	case f.carries(kind, group):
		return score + ofKind
	}
	return 0
}

// What a row scores for an exact name, and for naming the kind. A finalizer is shorter than
// 512 characters: it is a name of the API with a domain.
const (
	exactName = 4096
	ofKind    = 1024
)

// carries reports whether the row names the kind.
func (f Family) carries(kind, group string) bool {
	return slices.Contains(f.Kinds, kind) || slices.Contains(f.Kinds, kind+"."+group)
}

// Match reports whether the text fits the pattern, in which * stands for any text.
func Match(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}
