package plan

import (
	"fmt"
	"strings"

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
func (s *survey) addWarnings() {
	if names := s.onNodes; len(names) > 0 { // #09
		s.problem(teardown.Problem{Reason: "OnNode", Text: named(names, "kept volume") +
			". Each is on the disk of one node, and goes with that machine: copy the data first"})
	}
	for _, p := range platforms {
		if s.platforms[p.label] {
			s.addTaken(p)
		}
	}
}

// platform is a program whose own deletion of a cluster takes disks that a teardown keeps.
type platform struct {
	name string
	// label is on each node.
	label string
	// takes reports whether the deletion takes the kept item.
	takes func(*survey, *teardown.Item) bool
	// why says how it finds them, next is the command that takes a disk out of its reach.
	why  string
	next func(s *survey, item *teardown.Item) string
}

var platforms = []platform{
	{
		name: "kops delete cluster", label: "kops.k8s.io/instancegroup", takes: isOf("ebs.csi.aws.com"),
		why: "it deletes EBS volumes by their tags", next: untag,
	},
	{
		name: "openshift-install destroy cluster", label: "node.openshift.io/os_id", takes: isOf("ebs.csi.aws.com"),
		why: "it deletes whatever has the tag of the cluster", next: untag,
	},
	{
		name: "openshift-install destroy cluster", label: "node.openshift.io/os_id", takes: isOf("disk.csi.azure.com"),
		why: "it deletes the resource group of the cluster", next: moveDisk,
	},
	{
		name: "az aks delete", label: "kubernetes.azure.com/cluster", takes: inNodeGroup,
		why: "it deletes the resource group of the nodes with all disks in it", next: moveDisk,
	},
}

func isOf(driver string) func(*survey, *teardown.Item) bool {
	return func(_ *survey, item *teardown.Item) bool { return item.Driver == driver }
}

// inNodeGroup reports whether the disk is in the resource group of the nodes, whatever its name.
func inNodeGroup(s *survey, item *teardown.Item) bool {
	group := groupOf(item.ExternalID)
	return item.Driver == "disk.csi.azure.com" && (s.groups[group] || strings.HasPrefix(group, "mc_"))
}

// groupOf returns the resource group of a machine or disk of Azure, "" for another ID.
func groupOf(id string) string {
	_, rest, _ := strings.Cut(strings.ToLower(id), "/resourcegroups/")
	group, _, _ := strings.Cut(rest, "/")
	return group
}

// untag removes the tag by which the platform finds a disk.
func untag(s *survey, item *teardown.Item) string {
	name := s.clusterTag
	if name == "" {
		name = "CLUSTER"
	}
	volume := item.ExternalID[strings.LastIndex(item.ExternalID, "/")+1:]
	return strings.Join([]string{"aws", "ec2", "delete-tags", "--resources", pasted(volume), "--tags",
		pasted("Key=kubernetes.io/cluster/" + name), pasted("Key=KubernetesCluster")}, " ")
}

// pasted returns a text of the cluster as one word of a command: a line end in it would begin another command.
func pasted(text string) string { return cluster.Quote(terminal.Printable(text)) }

func moveDisk(_ *survey, item *teardown.Item) string {
	return "az resource move --destination-group RESOURCE_GROUP --ids " + pasted(item.ExternalID)
}

// addTaken warns of kept disks that the platform takes.
func (s *survey) addTaken(p platform) {
	var names, commands []string
	for i := range s.plan.Items {
		item := &s.plan.Items[i]
		if item.Kind != teardown.Volume || item.Plan != teardown.PlanKeep || !p.takes(s, item) {
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
