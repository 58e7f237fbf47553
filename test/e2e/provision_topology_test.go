package e2e

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func reasonIs(reason string) fields.Selector {
	return fields.OneTermEqualSelector("reason", reason)
}

// ownNode makes a node of the test's own in the place, given as KEY=VALUE, and
// returns its name. Without a place no driver runs there.
func (s *scene) ownNode(name, place string) string {
	s.t.Helper()
	name = s.namespace + "-" + name
	if key, value, found := strings.Cut(place, "="); found {
		s.createNode(name, map[string]string{key: value})
		return name
	}
	_, err := s.client.CoreV1().Nodes().Create(s.ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	s.must(err, "create node")
	return name
}

// zoned gives the test a driver that has volumes in two zones, and two classes of
// it, named like the namespace: one is Immediate, the other, with the suffix -wait,
// is WaitForFirstConsumer.
func (s *scene) zoned(provisioner string, change ...func(*storagev1.StorageClass)) *scene {
	s.t.Helper()
	own := s.beside(s.namespace+".zoned", "--with=topology --topology=zone=a --topology=zone=b", provisioner)
	own.createClass(change...)
	own.createClass(func(c *storagev1.StorageClass) {
		wait := storagev1.VolumeBindingWaitForFirstConsumer
		c.Name, c.VolumeBindingMode = c.Name+"-wait", &wait
	})
	return own
}

// chosen is what the scheduler writes on a claim.
func chosen(node string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnSelectedNode: node}
	}
}

// zoneOf returns the zone that the volume is reachable from.
func zoneOf(volume *v1.PersistentVolume) string {
	if volume.Spec.NodeAffinity == nil {
		return ""
	}
	return volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
}

func TestAVolumeIsMadeNearTheNodeThatWasChosen(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true})).zoned("")
	for _, zone := range []string{"a", "b"} {
		node := s.ownNode(zone, "zone="+zone)
		s.createClaim(zone, s.namespace+"-wait", chosen(node))
		if got := zoneOf(s.awaitBound(zone)); got != zone {
			t.Errorf("the volume near %s is in zone %q", node, got)
		}
	}
}

// untilNodeIsKnown makes volumes until one is in the zone of the only node: before
// the provisioner has heard of a node, every place is as good.
func (s *scene) untilNodeIsKnown(class, zone string) {
	s.t.Helper()
	for i := 0; ; i++ {
		claim := fmt.Sprint("asking-", i)
		s.createClaim(claim, class)
		if zoneOf(s.awaitBound(claim)) == zone {
			return
		}
	}
}

func TestAnImmediateVolumeIsWhereTheClassAllows(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	key := "zone." + s.namespace // no other test's node has it
	s = s.beside(s.namespace+".zoned", "--with=topology --topology="+key+"=a --topology="+key+"=b", "")
	s.createClass(func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: key, Values: []string{"b"}}}}}
	})
	s.ownNode("node", key+"=a")
	s.createClass(func(c *storagev1.StorageClass) { c.Name += "-anywhere" })
	s.createClaim("here", s.namespace)
	s.untilNodeIsKnown(s.namespace+"-anywhere", "a")
	for _, claim := range []string{"first", "second", "third"} {
		s.createClaim(claim, s.namespace+"-anywhere")
		if got := zoneOf(s.awaitBound(claim)); got != "a" {
			t.Errorf("the volume that may be anywhere is in zone %q, the only nodes are in a", got)
		}
	}
	if got := zoneOf(s.awaitBound("here")); got != "b" {
		t.Errorf("the volume is in zone %q, the class allows b", got)
	}
}

func TestANodeThatCannotReachAVolumeIsGivenBackToTheScheduler(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true})).zoned("--strict-topology")
	for name, tc := range map[string]struct{ place, names string }{
		"full":   {"zone=c", "ResourceExhausted"},
		"absent": {"", "CSINode"},
	} {
		claim := s.createClaim(name, s.namespace+"-wait", chosen(s.ownNode("wrong-"+name, tc.place)))
		if message := s.awaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, tc.names) {
			t.Errorf("%s: the event does not say why: %s", name, message)
		}
		s.awaitClaim(name, "is given back", func(c *v1.PersistentVolumeClaim) bool { return c.Annotations[storage.AnnSelectedNode] == "" })
		s.annotate(claim, storage.AnnSelectedNode, s.ownNode("right-"+name, "zone=b"))
		if got := zoneOf(s.awaitBound(name)); got != "b" {
			t.Errorf("%s: the volume is in zone %q, want that of the second node", name, got)
		}
	}
}
