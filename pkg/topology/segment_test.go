package topology_test

import (
	"maps"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

func TestSegmentKeepsLabels(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"none":              {},
		"one":               {"zone": "a"},
		"several":           {"example.com/zone": "a", "rack": "1"},
		"empty value":       {"zone": ""},
		"empty key":         {"": "a"},
		"separators":        {"a,b=c": "d=e,f"},
		"escaped separator": {"a%2C": "%3D%25"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := topology.SegmentOf(labels).Labels(); !maps.Equal(got, labels) {
				t.Errorf("Labels = %v, want %v", got, labels)
			}
		})
	}
}

func TestSegmentTextIsSortedByKey(t *testing.T) {
	if got := topology.SegmentOf(map[string]string{"zone": "a", "rack": "1"}); got != "rack=1,zone=a" {
		t.Errorf("SegmentOf = %q", got)
	}
}

func TestSegmentContainsNode(t *testing.T) {
	node := map[string]string{"zone": "a", "rack": "1"}
	for segment, want := range map[topology.Segment]bool{"": true, "zone=a": true, "rack=1,zone=a": true, "zone=b": false,
		"host=a": false, "rack=1,zone=b": false} {
		if got := segment.Contains(node); got != want {
			t.Errorf("%q contains %v: %v, want %v", segment, node, got, want)
		}
	}
}

func TestSegmentWithKeysNeedsEveryLabel(t *testing.T) {
	labels := map[string]string{"zone": "a", "rack": "1"}
	for name, tc := range map[string]struct {
		keys  []string
		want  topology.Segment
		found bool
	}{
		"all keys":    {[]string{"zone", "rack"}, "rack=1,zone=a", true},
		"one key":     {[]string{"zone"}, "zone=a", true},
		"no key":      {nil, "", true},
		"missing key": {[]string{"zone", "host"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, found := topology.SegmentWithKeys(labels, tc.keys); got != tc.want || found != tc.found {
				t.Errorf("SegmentWithKeys = %q, %v, want %q, %v", got, found, tc.want, tc.found)
			}
		})
	}
}

func FuzzSegment(f *testing.F) {
	f.Add("zone", "a", "rack", "1")
	f.Add("a,b", "=", "%2C", "%")
	f.Fuzz(func(t *testing.T, key, value, otherKey, otherValue string) {
		labels := map[string]string{key: value, otherKey: otherValue}
		segment := topology.SegmentOf(labels)
		if got := segment.Labels(); !maps.Equal(got, labels) {
			t.Errorf("Labels = %v, want %v", got, labels)
		}
		if !segment.Contains(labels) {
			t.Errorf("%q does not contain its own labels", segment)
		}
	})
}
