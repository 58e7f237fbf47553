package topology

import (
	"cmp"
	"maps"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
)

// Place is the value of each topology key.
type Place map[string]string

// Contains says whether whatever has the segments of other lies in the place.
func (p Place) Contains(other Place) bool {
	for key, value := range p {
		if own, known := other[key]; !known || own != value {
			return false
		}
	}
	return true
}

// Meets says whether something can lie in both places: no key that both know has
// two values.
func (p Place) Meets(other Place) bool {
	for key, value := range p {
		if own, known := other[key]; known && own != value {
			return false
		}
	}
	return true
}

// compare orders places: those of fewer segments first, then by key and value.
func compare(a, b Place) int {
	if different := cmp.Compare(len(a), len(b)); different != 0 {
		return different
	}
	keys, others := slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))
	for i, key := range keys {
		if different := cmp.Or(cmp.Compare(key, others[i]), cmp.Compare(a[key], b[others[i]])); different != 0 {
			return different
		}
	}
	return 0
}

// distinct returns the places in their order, each of them once.
func distinct(places []Place) []Place {
	slices.SortFunc(places, compare)
	return slices.CompactFunc(places, func(a, b Place) bool { return maps.Equal(a, b) })
}

// placeOf reads the place of a node off its labels, nil if one is missing.
func placeOf(labels map[string]string, keys []string) Place {
	place := make(Place, len(keys))
	for _, key := range keys {
		value, known := labels[key]
		if !known {
			return nil
		}
		place[key] = value
	}
	return place
}

// allowed returns the places that a class allows: each of its terms asks for one
// of several values of every key, and becomes one place for each combination.
func allowed(terms []v1.TopologySelectorTerm) []Place {
	var all []Place
	for _, term := range terms {
		if len(term.MatchLabelExpressions) == 0 {
			continue
		}
		places := []Place{{}}
		for _, expression := range term.MatchLabelExpressions {
			places = combine(places, expression)
		}
		all = append(all, places...)
	}
	return all
}

// combine returns every place narrowed down to every value of the expression.
func combine(places []Place, expression v1.TopologySelectorLabelRequirement) []Place {
	var narrower []Place
	for _, value := range expression.Values {
		segment := Place{expression.Key: value}
		for _, place := range places {
			if !place.Meets(segment) {
				continue
			}
			narrowed := maps.Clone(place)
			narrowed[expression.Key] = value
			narrower = append(narrower, narrowed)
		}
	}
	return narrower
}

func toCSI(places []Place) []*csi.Topology {
	topologies := make([]*csi.Topology, 0, len(places))
	for _, place := range places {
		topologies = append(topologies, &csi.Topology{Segments: place})
	}
	return topologies
}
