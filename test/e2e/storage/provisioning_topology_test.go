package storage

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// ownNode creates a node for the test in the topology segment KEY=VALUE, and returns its
// name. With an empty segment, no driver runs on the node.
func ownNode(s *harness.Session, name, place string) string {
	s.T.Helper()
	name = s.Namespace + "-" + name
	if key, value, found := strings.Cut(place, "="); found {
		s.CreateNode(name, map[string]string{key: value})
		return name
	}
	_, err := s.Client.CoreV1().Nodes().Create(s.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	s.Must(err, "create node")
	return name
}

// zoned returns a session with a driver in two zones and two classes, named like the
// namespace: one is Immediate, the other, with the suffix -wait, WaitForFirstConsumer.
func zoned(s *harness.Session, provisioner string, change ...func(*storagev1.StorageClass)) *harness.Session {
	s.T.Helper()
	own := s.WithOwnDriver(s.Namespace+".zoned", "--with=topology --topology=zone=a --topology=zone=b", provisioner)
	own.CreateClass(change...)
	own.CreateClass(func(c *storagev1.StorageClass) {
		wait := storagev1.VolumeBindingWaitForFirstConsumer
		c.Name, c.VolumeBindingMode = c.Name+"-wait", &wait
	})
	return own
}

// zoneOf returns the zone of the volume.
func zoneOf(volume *v1.PersistentVolume) string {
	if volume.Spec.NodeAffinity == nil {
		return ""
	}
	return volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
}

func TestVolumeIsCreatedInTopologyOfSelectedNode(t *testing.T) {
	s := zoned(harness.Join(t, harness.Setup{}), "")
	for _, zone := range []string{"a", "b"} {
		node := ownNode(s, zone, "zone="+zone)
		s.CreateClaim(zone, s.Namespace+"-wait", harness.WithSelectedNode(node))
		if got := zoneOf(s.AwaitBound(zone)); got != zone {
			t.Errorf("the volume for %s is in zone %q", node, got)
		}
	}
}

// untilNodeIsKnown creates volumes until one is in the zone of the only node. Before the
// node is in the cache of the provisioner, a volume may be in any zone.
func untilNodeIsKnown(s *harness.Session, class, zone string) {
	s.T.Helper()
	for i := 0; ; i++ {
		claim := fmt.Sprint("asking-", i)
		s.CreateClaim(claim, class)
		if zoneOf(s.AwaitBound(claim)) == zone {
			return
		}
	}
}

func TestImmediateVolumeHonorsAllowedTopologies(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	key := "zone." + s.Namespace // no node of another test has this label
	s = s.WithOwnDriver(s.Namespace+".zoned", "--with=topology --topology="+key+"=a --topology="+key+"=b", "")
	s.CreateClass(func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: key, Values: []string{"b"}}}}}
	})
	ownNode(s, "node", key+"=a")
	s.CreateClass(func(c *storagev1.StorageClass) { c.Name += "-anywhere" })
	s.CreateClaim("here", s.Namespace)
	untilNodeIsKnown(s, s.Namespace+"-anywhere", "a")
	for _, claim := range []string{"first", "second", "third"} {
		s.CreateClaim(claim, s.Namespace+"-anywhere")
		if got := zoneOf(s.AwaitBound(claim)); got != "a" {
			t.Errorf("the volume without allowed topologies is in zone %q, all nodes are in a", got)
		}
	}
	if got := zoneOf(s.AwaitBound("here")); got != "b" {
		t.Errorf("the volume is in zone %q, the class allows b", got)
	}
}

func TestUnreachableTopologyReschedulesClaim(t *testing.T) {
	s := zoned(harness.Join(t, harness.Setup{}), "--strict-topology")
	for name, tc := range map[string]struct{ place, names string }{
		"full":   {"zone=c", "ResourceExhausted"},
		"absent": {"", "CSINode"},
	} {
		claim := s.CreateClaim(name, s.Namespace+"-wait", harness.WithSelectedNode(ownNode(s, "wrong-"+name, tc.place)))
		if message := s.AwaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, tc.names) {
			t.Errorf("%s: the event does not name the cause: %s", name, message)
		}
		s.AwaitClaim(name, "has no selected node",
			func(c *v1.PersistentVolumeClaim) bool { return c.Annotations[storage.AnnSelectedNode] == "" })
		s.Annotate(claim, storage.AnnSelectedNode, ownNode(s, "right-"+name, "zone=b"))
		if got := zoneOf(s.AwaitBound(name)); got != "b" {
			t.Errorf("%s: the volume is in zone %q, want the zone of the second node", name, got)
		}
	}
}
