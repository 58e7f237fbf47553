package topology_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

func TestReaches(t *testing.T) {
	require := func(key string, operator v1.NodeSelectorOperator, values ...string) v1.NodeSelectorRequirement {
		return v1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	terms := func(terms ...[]v1.NodeSelectorRequirement) *v1.VolumeNodeAffinity {
		affinity := &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{}}
		for _, expressions := range terms {
			affinity.Required.NodeSelectorTerms = append(affinity.Required.NodeSelectorTerms,
				v1.NodeSelectorTerm{MatchExpressions: expressions})
		}
		return affinity
	}
	all := func(r ...v1.NodeSelectorRequirement) []v1.NodeSelectorRequirement { return r }
	field := &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: all(require("metadata.name", v1.NodeSelectorOpIn, "node"))}}}}
	node := map[string]string{"zone": "a", "host": "1"}
	for name, tc := range map[string]struct {
		node     map[string]string
		affinity *v1.VolumeNodeAffinity
		want     bool
	}{
		"own segment":                  {node, terms(all(require("zone", v1.NodeSelectorOpIn, "a"), require("host", v1.NodeSelectorOpIn, "1"))), true},
		"other segment":                {node, terms(all(require("host", v1.NodeSelectorOpIn, "2"))), false},
		"one of two labels":            {node, terms(all(require("zone", v1.NodeSelectorOpIn, "a"), require("host", v1.NodeSelectorOpIn, "2"))), false},
		"one of two terms":             {node, terms(all(require("host", v1.NodeSelectorOpIn, "2")), all(require("host", v1.NodeSelectorOpIn, "1"))), true},
		"NotIn own value":              {node, terms(all(require("host", v1.NodeSelectorOpNotIn, "1"))), false},
		"Exists, label present":        {node, terms(all(require("host", v1.NodeSelectorOpExists))), true},
		"Exists, label missing":        {node, terms(all(require("rack", v1.NodeSelectorOpExists))), false},
		"Gt":                           {node, terms(all(require("host", v1.NodeSelectorOpGt, "0"))), true},
		"unknown operator":             {node, terms(all(require("host", "Near", "1"))), false},
		"empty term":                   {node, terms(nil), false},
		"no term":                      {node, terms(), false},
		"match fields":                 {node, field, false},
		"no affinity":                  {node, nil, true},
		"driver without topology":      {nil, terms(all(require("host", v1.NodeSelectorOpIn, "2"))), true},
		"affinity without requirement": {node, &v1.VolumeNodeAffinity{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := topology.Reaches(tc.node, tc.affinity); got != tc.want {
				t.Errorf("Reaches = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	host := func(values ...string) v1.TopologySelectorTerm { return term(allow("host", values...)) }
	node := map[string]string{"host": "1", "zone": "a"}
	for name, tc := range map[string]struct {
		terms []v1.TopologySelectorTerm
		want  bool
	}{
		"no affinity":                 {nil, true},
		"own value":                   {[]v1.TopologySelectorTerm{host("1")}, true},
		"own value among others":      {[]v1.TopologySelectorTerm{host("0", "1")}, true},
		"own value in one term":       {[]v1.TopologySelectorTerm{host("0"), host("1")}, true},
		"other value":                 {[]v1.TopologySelectorTerm{host("2")}, false},
		"other value of a second key": {[]v1.TopologySelectorTerm{term(allow("host", "1"), allow("zone", "b"))}, false},
		"missing label":               {[]v1.TopologySelectorTerm{term(allow("rack", "1"))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := topology.Allows(tc.terms, node); got != tc.want {
				t.Errorf("Allows = %v, want %v", got, tc.want)
			}
		})
	}
}
