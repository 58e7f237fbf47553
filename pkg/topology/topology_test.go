package topology_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

// node returns a node with labels "key=value ...", all registered as topology keys.
func node(name, labels string) topology.Node {
	n := topology.Node{Name: name, Labels: parse(labels)}
	n.Keys = slices.Sorted(maps.Keys(n.Labels))
	return n
}

// registered returns a node with labels and registered topology keys.
func registered(name, labels string, keys ...string) topology.Node {
	return topology.Node{Name: name, Labels: parse(labels), Keys: keys}
}

func parse(text string) map[string]string {
	segments := map[string]string{}
	for _, pair := range strings.Fields(text) {
		key, value, _ := strings.Cut(pair, "=")
		segments[key] = value
	}
	return segments
}

// texts returns the topologies as "key=value ...".
func texts(list []*csi.Topology) []string {
	var texts []string
	for _, topology := range list {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(topology.GetSegments())) {
			pairs = append(pairs, key+"="+topology.GetSegments()[key])
		}
		texts = append(texts, strings.Join(pairs, " "))
	}
	return texts
}

func allow(key string, values ...string) v1.TopologySelectorLabelRequirement {
	return v1.TopologySelectorLabelRequirement{Key: key, Values: values}
}

func term(requirements ...v1.TopologySelectorLabelRequirement) v1.TopologySelectorTerm {
	return v1.TopologySelectorTerm{MatchLabelExpressions: requirements}
}

var zones = []topology.Node{node("n1", "zone=a"), node("n2", "zone=b"), node("n3", "zone=b"), node("n4", "zone=c")}

var (
	silent     = topology.Node{Name: "silent", Labels: parse("zone=a")}
	unlabelled = topology.Node{Name: "bare", Keys: []string{"zone"}}
)

var requirementCases = map[string]struct {
	in                   topology.Input
	requisite, preferred []string
	fails                string
}{
	"Immediate requests all segments, from the offset": {
		in:        topology.Input{ClaimName: "data-web-1", Nodes: zones, Immediate: true},
		requisite: []string{"zone=a", "zone=b", "zone=c"}, preferred: []string{"zone=b", "zone=c", "zone=a"},
	},
	"Immediate without --immediate-topology": {in: topology.Input{Nodes: zones}},
	"Immediate with allowed topologies": {
		in:        topology.Input{ClaimName: "c", Nodes: zones, Allowed: []v1.TopologySelectorTerm{term(allow("zone", "b"))}},
		requisite: []string{"zone=b"}, preferred: []string{"zone=b"},
	},
	"allowed topologies with an empty term": {
		in: topology.Input{ClaimName: "c", Nodes: zones, Immediate: true, Allowed: []v1.TopologySelectorTerm{term()}},
	},
	"values of several keys are combined": {
		in: topology.Input{Selected: &topology.Node{Name: "n", Labels: parse("rack=2 zone=b"),
			Keys: []string{"zone", "rack"}},
			Allowed: []v1.TopologySelectorTerm{term(allow("zone", "a", "b"), allow("rack", "1", "2"))}},
		requisite: []string{"rack=1 zone=a", "rack=1 zone=b", "rack=2 zone=a", "rack=2 zone=b"},
		preferred: []string{"rack=2 zone=b", "rack=1 zone=a", "rack=1 zone=b", "rack=2 zone=a"},
	},
	"one key in two expressions": {
		in: topology.Input{ClaimName: "c",
			Allowed: []v1.TopologySelectorTerm{term(allow("zone", "a", "b"), allow("zone", "b", "c"))}},
		requisite: []string{"zone=b"}, preferred: []string{"zone=b"},
	},
	"selected node is preferred": {
		in:        topology.Input{Nodes: zones, Selected: &zones[1]},
		requisite: []string{"zone=a", "zone=b", "zone=c"}, preferred: []string{"zone=b", "zone=c", "zone=a"},
	},
	"strict": {
		in:        topology.Input{Nodes: zones, Selected: &zones[1], Strict: true},
		requisite: []string{"zone=b"}, preferred: []string{"zone=b"},
	},
	"strict, allowed by a wider segment": {
		in: topology.Input{Selected: &topology.Node{Name: "n", Labels: parse("rack=2 zone=b"),
			Keys: []string{"zone", "rack"}},
			Strict: true, Allowed: []v1.TopologySelectorTerm{term(allow("zone", "b"))}},
		requisite: []string{"rack=2 zone=b"}, preferred: []string{"rack=2 zone=b"},
	},
	"strict, not allowed": {
		in: topology.Input{Selected: &zones[0], Strict: true,
			Allowed: []v1.TopologySelectorTerm{term(allow("zone", "b"))}},
		fails: "zone=a",
	},
	"selected node is not allowed": {
		in:    topology.Input{Selected: &zones[0], Allowed: []v1.TopologySelectorTerm{term(allow("zone", "b"))}},
		fails: "n1",
	},
	"selected node without the driver":  {in: topology.Input{Nodes: zones, Selected: &silent}, fails: "silent"},
	"selected node without labels":      {in: topology.Input{Nodes: zones, Selected: &unlabelled}, fails: "bare"},
	"Immediate, driver on no node":      {in: topology.Input{Nodes: []topology.Node{silent}, Immediate: true}, fails: "no node"},
	"Immediate, no node has the labels": {in: topology.Input{Nodes: []topology.Node{unlabelled}, Immediate: true}, fails: "zone"},
	"node without the driver is ignored": {
		in:        topology.Input{ClaimName: "c", Nodes: []topology.Node{zones[1], silent}, Immediate: true},
		requisite: []string{"zone=b"}, preferred: []string{"zone=b"},
	},
	"selected node, other node without the driver": {
		in:        topology.Input{Nodes: []topology.Node{zones[1], silent}, Selected: &zones[1]},
		requisite: []string{"zone=b"}, preferred: []string{"zone=b"},
	},
	"every registered set of keys": {
		in: topology.Input{ClaimName: "c", Immediate: true, Nodes: []topology.Node{
			node("new", "rack=1 zone=a"), registered("o1", "zone=b", "zone"), registered("o2", "zone=c", "zone")}},
		requisite: []string{"zone=a", "zone=b", "zone=c", "rack=1 zone=a"},
		preferred: []string{"zone=a", "zone=b", "zone=c", "rack=1 zone=a"},
	},
	"set of keys in another order": {
		in: topology.Input{ClaimName: "c", Immediate: true, Nodes: []topology.Node{
			registered("n1", "rack=1 zone=a", "zone", "rack"), registered("n2", "rack=1 zone=a", "rack", "zone")}},
		requisite: []string{"rack=1 zone=a"}, preferred: []string{"rack=1 zone=a"},
	},
	"sets without a common key": {
		in: topology.Input{ClaimName: "c", Immediate: true, Nodes: []topology.Node{
			registered("n1", "region=e zone=1", "region"), registered("n2", "region=w zone=2", "zone"),
			registered("n3", "region=s zone=3")}},
		requisite: []string{"region=e", "zone=2"}, preferred: []string{"region=e", "zone=2"},
	},
	"label that is not registered": {
		in: topology.Input{ClaimName: "c", Immediate: true, Nodes: []topology.Node{
			registered("n1", "region=e zone=1", "region"), registered("n2", "region=e zone=2", "region", "zone")}},
		requisite: []string{"region=e", "region=e zone=2"}, preferred: []string{"region=e", "region=e zone=2"},
	},
	"set of keys without labels": {
		in: topology.Input{ClaimName: "c", Immediate: true, Nodes: []topology.Node{
			registered("n1", "zone=1", "zone"), registered("n2", "", "zone", "rack")}},
		requisite: []string{"zone=1"}, preferred: []string{"zone=1"},
	},
	"keys of the selected node only": {
		in: topology.Input{
			Selected: &topology.Node{Name: "n1", Labels: parse("region=e"), Keys: []string{"region"}},
			Nodes: []topology.Node{
				registered("n1", "region=e", "region"), registered("n2", "region=w zone=1", "zone"),
				registered("n3", "region=c zone=2", "zone", "region")}},
		requisite: []string{"region=c", "region=e"}, preferred: []string{"region=e", "region=c"},
	},
	"selected node missing in the cache": {
		in: topology.Input{
			Selected: &topology.Node{Name: "n1", Labels: parse("zone=b"), Keys: []string{"zone"}},
			Nodes:    []topology.Node{registered("n1", "zone=old"), zones[3]}},
		requisite: []string{"zone=b", "zone=c"}, preferred: []string{"zone=b", "zone=c"},
	},
}

func TestRequirement(t *testing.T) {
	for name, tc := range requirementCases {
		t.Run(name, func(t *testing.T) {
			got, err := topology.Requirement(tc.in)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Fatalf("Requirement = %v, %v, want an error with %q", got, err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.requisite, texts(got.GetRequisite())); diff != "" {
				t.Errorf("requisite: %s", diff)
			}
			if diff := cmp.Diff(tc.preferred, texts(got.GetPreferred())); diff != "" {
				t.Errorf("preferred: %s", diff)
			}
		})
	}
}

// The random clusters have few names, so that many labels coincide.
func TestInvariantsOfRandomRequirements(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := randomInput(r)
		got, err := topology.Requirement(in)
		if err != nil || got == nil {
			continue
		}
		requisite, preferred := texts(got.GetRequisite()), texts(got.GetPreferred())
		if !slices.Equal(slices.Sorted(slices.Values(requisite)), slices.Sorted(slices.Values(preferred))) {
			t.Fatalf("seed %d: preferred %v is no permutation of requisite %v", seed, preferred, requisite)
		}
		if len(slices.Compact(slices.Sorted(slices.Values(requisite)))) != len(requisite) || len(requisite) == 0 {
			t.Fatalf("seed %d: requisite %v is empty or repeats itself", seed, requisite)
		}
		if in.Selected != nil && !topology.SegmentOf(got.GetPreferred()[0].GetSegments()).Contains(in.Selected.Labels) {
			t.Fatalf("seed %d: %s is preferred, the node has labels %v", seed, preferred[0], in.Selected.Labels)
		}
		r.Shuffle(len(in.Nodes), func(i, j int) { in.Nodes[i], in.Nodes[j] = in.Nodes[j], in.Nodes[i] })
		r.Shuffle(len(in.Allowed), func(i, j int) { in.Allowed[i], in.Allowed[j] = in.Allowed[j], in.Allowed[i] })
		again, err := topology.Requirement(in)
		if err != nil || !slices.Equal(texts(again.GetPreferred()), preferred) {
			t.Fatalf("seed %d: other order of listing: %v, %v, want %v", seed, texts(again.GetPreferred()), err, preferred)
		}
	}
}

// keySets are the topology keys that a driver registers on nodes.
var keySets = [][]string{nil, {"zone"}, {"rack"}, {"zone", "rack"}, {"rack", "zone"}}

func randomInput(r *rand.Rand) topology.Input {
	in := topology.Input{ClaimName: fmt.Sprintf("data-set-%d", r.IntN(9)), Strict: r.IntN(2) == 0,
		Immediate: r.IntN(2) == 0}
	for i := range 1 + r.IntN(5) {
		labels := fmt.Sprintf("zone=%c rack=%d", 'a'+r.IntN(3), r.IntN(2))
		in.Nodes = append(in.Nodes, registered(fmt.Sprintf("n%d", i), labels, keySets[r.IntN(len(keySets))]...))
	}
	for range r.IntN(3) {
		in.Allowed = append(in.Allowed, term(allow("zone", string('a'+rune(r.IntN(3))), string('a'+rune(r.IntN(3))))))
	}
	if r.IntN(2) == 0 {
		in.Selected = &topology.Node{Name: in.Nodes[0].Name, Labels: in.Nodes[0].Labels, Keys: in.Nodes[0].Keys}
	}
	return in
}

func TestReplicasOfAStatefulSetRotateThroughSegments(t *testing.T) {
	first := func(claim string) string {
		got, err := topology.Requirement(topology.Input{ClaimName: claim, Nodes: zones, Immediate: true})
		if err != nil {
			t.Fatal(err)
		}
		return texts(got.GetPreferred())[0]
	}
	seen := map[string]bool{}
	for ordinal := range 3 {
		data, logs := first(fmt.Sprintf("data-web-%d", ordinal)), first(fmt.Sprintf("logs-web-%d", ordinal))
		if data != logs {
			t.Errorf("replica %d: claims prefer %s and %s", ordinal, data, logs)
		}
		seen[data] = true
	}
	if len(seen) != 3 {
		t.Errorf("three replicas prefer only %v", seen)
	}
}

func TestLongInvalidLabelIsNotQuoted(t *testing.T) {
	reason := topology.Invalid([]*csi.Topology{{Segments: map[string]string{"zone": strings.Repeat("secret", 20)}}})
	if strings.Contains(reason, "secret") || !strings.Contains(reason, `"zone"=(120 bytes)`) {
		t.Errorf("reason: %s", reason)
	}
}

func TestTopologyOfVolumeIsChecked(t *testing.T) {
	topologies := func(texts ...string) (list []*csi.Topology) {
		for _, text := range texts {
			list = append(list, &csi.Topology{Segments: parse(text)})
		}
		return list
	}
	requested := &csi.TopologyRequirement{Requisite: topologies("zone=a", "zone=b")}
	for name, tc := range map[string]struct {
		required           *csi.TopologyRequirement
		accessible         []*csi.Topology
		elsewhere, invalid bool
	}{
		"requested segment":           {requested, topologies("zone=b"), false, false},
		"part of a requested segment": {requested, topologies("zone=b rack=1"), false, false},
		"requested and other segment": {requested, topologies("zone=z", "zone=a"), false, false},
		"every node":                  {requested, nil, false, false},
		"topology without segments":   {requested, topologies(""), false, false},
		"only other segments":         {requested, topologies("zone=z", "zone=y rack=1"), true, false},
		"no requirement":              {nil, topologies("zone=z"), false, false},
		"key is no label":             {nil, topologies("a/b/c=z"), false, true},
		"value is no label":           {nil, topologies("zone=*"), false, true},
		"value is too long":           {nil, topologies("zone=" + strings.Repeat("z", 64)), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			elsewhere, invalid := topology.Elsewhere(tc.required, tc.accessible), topology.Invalid(tc.accessible)
			if (elsewhere != "") != tc.elsewhere || (invalid != "") != tc.invalid {
				t.Errorf("elsewhere: %q, invalid: %q", elsewhere, invalid)
			}
		})
	}
}

func TestAffinityHasOneTermPerSegment(t *testing.T) {
	got := topology.Affinity([]*csi.Topology{{Segments: parse("zone=a rack=1")}, {}, {Segments: parse("zone=b")}})
	terms := got.Required.NodeSelectorTerms
	if len(terms) != 2 || len(terms[0].MatchExpressions) != 2 || terms[0].MatchExpressions[0].Key != "rack" ||
		terms[1].MatchExpressions[0].Values[0] != "b" {
		t.Errorf("terms: %+v", terms)
	}
	if topology.Affinity([]*csi.Topology{{}}) != nil {
		t.Error("a topology without segments restricts the nodes")
	}
}

func FuzzTerms(f *testing.F) {
	f.Add("zone", "a,b", "rack", "1,2", "zone=a rack=1", "data-web-0", true)
	f.Add("", "", "zone", ",", "", "-4294967295", false)
	f.Fuzz(func(t *testing.T, key, values, otherKey, otherValues, labels, claim string, strict bool) {
		in := topology.Input{
			ClaimName: claim, Strict: strict, Immediate: true, Nodes: []topology.Node{node("n", labels)},
			Allowed: []v1.TopologySelectorTerm{term(allow(key, strings.Split(values, ",")...),
				allow(otherKey, strings.Split(otherValues, ",")...))},
		}
		for _, selected := range []*topology.Node{nil, &in.Nodes[0]} {
			in.Selected = selected
			got, err := topology.Requirement(in)
			if err == nil && len(got.GetPreferred()) != len(got.GetRequisite()) {
				t.Errorf("requisite %v, preferred %v", texts(got.GetRequisite()), texts(got.GetPreferred()))
			}
			if reason := topology.Elsewhere(got, got.GetPreferred()[:min(1, len(got.GetPreferred()))]); err == nil &&
				reason != "" {
				t.Errorf("the preferred topology is not requested: %s", reason)
			}
		}
	})
}
