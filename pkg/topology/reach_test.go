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
			affinity.Required.NodeSelectorTerms = append(affinity.Required.NodeSelectorTerms, v1.NodeSelectorTerm{MatchExpressions: expressions})
		}
		return affinity
	}
	one := func(r ...v1.NodeSelectorRequirement) []v1.NodeSelectorRequirement { return r }
	field := &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: one(require("metadata.name", v1.NodeSelectorOpIn, "node"))}}}}
	node := map[string]string{"zone": "a", "host": "1"}
	for name, tc := range map[string]struct {
		node     map[string]string
		affinity *v1.VolumeNodeAffinity
		want     bool
	}{
		"its own place":                    {node, terms(one(require("zone", v1.NodeSelectorOpIn, "a"), require("host", v1.NodeSelectorOpIn, "1"))), true},
		"another place":                    {node, terms(one(require("host", v1.NodeSelectorOpIn, "2"))), false},
		"half its own place":               {node, terms(one(require("zone", v1.NodeSelectorOpIn, "a"), require("host", v1.NodeSelectorOpIn, "2"))), false},
		"one of two places":                {node, terms(one(require("host", v1.NodeSelectorOpIn, "2")), one(require("host", v1.NodeSelectorOpIn, "1"))), true},
		"every other place":                {node, terms(one(require("host", v1.NodeSelectorOpNotIn, "1"))), false},
		"a label that it has":              {node, terms(one(require("host", v1.NodeSelectorOpExists))), true},
		"a label that it has not":          {node, terms(one(require("rack", v1.NodeSelectorOpExists))), false},
		"a greater number":                 {node, terms(one(require("host", v1.NodeSelectorOpGt, "0"))), true},
		"an operator that nobody knows":    {node, terms(one(require("host", "Near", "1"))), false},
		"a term that asks for nothing":     {node, terms(nil), false},
		"no term":                          {node, terms(), false},
		"a node by its name":               {node, field, false},
		"everywhere":                       {node, nil, true},
		"a driver that tells no place":     {nil, terms(one(require("host", v1.NodeSelectorOpIn, "2"))), true},
		"an affinity that requires nought": {node, &v1.VolumeNodeAffinity{}, true},
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
		"everywhere":            {nil, true},
		"this node":             {[]v1.TopologySelectorTerm{host("1")}, true},
		"this node among some":  {[]v1.TopologySelectorTerm{host("0", "1")}, true},
		"this node in a term":   {[]v1.TopologySelectorTerm{host("0"), host("1")}, true},
		"another node":          {[]v1.TopologySelectorTerm{host("2")}, false},
		"another zone":          {[]v1.TopologySelectorTerm{term(allow("host", "1"), allow("zone", "b"))}, false},
		"a key that it has not": {[]v1.TopologySelectorTerm{term(allow("rack", "1"))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := topology.Allows(tc.terms, node); got != tc.want {
				t.Errorf("Allows = %v, want %v", got, tc.want)
			}
		})
	}
}
