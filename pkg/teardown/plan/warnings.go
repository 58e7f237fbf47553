package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// examples is how many objects a problem names.
const examples = 5

// named returns the count with the first names.
func named(names []string, noun string) string {
	text := terminal.Count(len(names), noun) + ": " + strings.Join(names[:min(examples, len(names))], ", ")
	if len(names) > examples {
		text += ", ..."
	}
	return text
}

// addWarnings adds what goes although it is kept.
func (s *survey) addWarnings(now time.Time) {
	if names := s.inventory.OnNodes(now); len(names) > 0 { // #09
		s.problem(teardown.Problem{Reason: "OnNode", Text: named(names, "kept volume") +
			". Each is on the disk of one node, and goes with that machine: copy the data first"})
	}
	for _, p := range platforms {
		if slices.ContainsFunc(s.nodes, func(node v1.Node) bool { return p.has(&node) }) {
			s.addTaken(p)
		}
	}
}

// platform is a program whose own deletion of a cluster takes disks that a teardown keeps.
type platform struct {
	name string
	has  func(*v1.Node) bool
	// takes reports whether the deletion takes the kept item.
	takes func(*teardown.Item) bool
	// why says how it finds them, next is the command that takes a disk out of its reach.
	why  string
	next func(s *survey, item *teardown.Item) string
}

var platforms = []platform{
	{
		name: "kops delete cluster", has: hasLabel("kops.k8s.io/instancegroup"), takes: isOf("ebs.csi.aws.com"),
		why: "it deletes EBS volumes by their tags", next: untag,
	},
	{
		name: "openshift-install destroy cluster", has: hasLabel("node.openshift.io/os_id"), takes: isOf("ebs.csi.aws.com"),
		why: "it deletes whatever has the tag of the cluster", next: untag,
	},
	{
		name: "openshift-install destroy cluster", has: hasLabel("node.openshift.io/os_id"), takes: isOf("disk.csi.azure.com"),
		why: "it deletes the resource group of the cluster", next: moveDisk,
	},
	{
		name: "az aks delete", has: hasLabel("kubernetes.azure.com/cluster"), takes: inNodeGroup,
		why: "it deletes the resource group of the nodes, MC_..., with all disks in it", next: moveDisk,
	},
}

func hasLabel(name string) func(*v1.Node) bool {
	return func(node *v1.Node) bool { return node.Labels[name] != "" }
}

func isOf(driver string) func(*teardown.Item) bool {
	return func(item *teardown.Item) bool { return item.Driver == driver }
}

func inNodeGroup(item *teardown.Item) bool {
	return item.Driver == "disk.csi.azure.com" && strings.Contains(strings.ToLower(item.ExternalID), "/resourcegroups/mc_")
}

// untag removes the tag by which the platform finds a disk.
func untag(s *survey, item *teardown.Item) string {
	name := s.clusterTag
	if name == "" {
		name = "CLUSTER"
	}
	volume := item.ExternalID[strings.LastIndex(item.ExternalID, "/")+1:]
	return strings.Join([]string{"aws", "ec2", "delete-tags", "--resources", cluster.Quote(volume), "--tags",
		cluster.Quote("Key=kubernetes.io/cluster/" + name), cluster.Quote("Key=KubernetesCluster")}, " ")
}

func moveDisk(_ *survey, item *teardown.Item) string {
	return "az resource move --destination-group RESOURCE_GROUP --ids " + cluster.Quote(item.ExternalID)
}

// addTaken warns of kept disks that the platform takes.
func (s *survey) addTaken(p platform) {
	var names, commands []string
	for i := range s.plan.Items {
		item := &s.plan.Items[i]
		if item.Kind != teardown.Volume || item.Plan != teardown.PlanKeep || !p.takes(item) {
			continue
		}
		names = append(names, item.Object.Name)
		if len(commands) < examples {
			commands = append(commands, p.next(s, item))
		}
	}
	if len(names) > 0 {
		s.problem(teardown.Problem{Reason: "TakenByPlatform", Text: fmt.Sprintf("%s. %q takes them: %s. For each disk, before it:",
			named(names, "kept volume"), p.name, p.why), Next: strings.Join(commands, "\n")})
	}
}
