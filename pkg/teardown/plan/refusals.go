package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/balancer"
)

// addRefusals adds what refuses.
func (s *survey) addRefusals(ctx context.Context, unread []string) {
	if s.plan.Cluster.ID == "" {
		unread = append(unread, "the ID of the cluster, the UID of namespace "+metav1.NamespaceSystem)
	}
	s.addOthers()
	for _, sentence := range unread { // #66
		s.problem(teardown.Problem{Reason: "Unreadable", Refuses: true, Text: "not all was read: " + sentence})
	}
	s.addServed(ctx)
	s.addLeading()
	s.addMissing(len(unread) == 0)
	missing, err := missingOf(ctx, s.Reader, s.ofPerson())
	if err != nil {
		s.problem(teardown.Problem{Reason: "Unreadable", Refuses: true, Text: fmt.Sprintf("could not ask for your rights: %v", err)})
	}
	for _, rule := range missing {
		s.problem(teardown.Problem{Reason: "RightsMissing", Refuses: true, Text: "you lack a right; the rule is " + rule})
	}
}

// addOthers refuses without the disks of another cluster, whose reason is its own: they are not known later either (#05).
func (s *survey) addOthers() {
	for _, name := range s.same {
		s.problem(teardown.Problem{Reason: "SameCluster", Refuses: true, Text: fmt.Sprintf("--other-kubeconfig %s leads to this "+
			"cluster: all its volumes would be kept", name)})
	}
	for _, other := range s.Others {
		for _, sentence := range other.Reader.Incomplete() {
			s.problem(teardown.Problem{Reason: "OtherUnreadable", Refuses: true, Text: fmt.Sprintf("--other-kubeconfig %s: not all "+
				"was read, so its volumes could be deleted: %s", other.Name, sentence)})
		}
	}
}

// serving are kinds that stand for other clusters, whose control planes or disks are in this one (#69).
var serving = map[string]string{
	"clusters.cluster.x-k8s.io":              "Cluster API",
	"hostedclusters.hypershift.openshift.io": "HyperShift",
	"shoots.core.gardener.cloud":             "Gardener",
	"tenantcontrolplanes.kamaji.clastix.io":  "Kamaji",
	"storageconsumers.ocs.openshift.io":      "OpenShift Data Foundation",
}

// addServed refuses a cluster that serves others.
func (s *survey) addServed(ctx context.Context) {
	var groups []string
	for name := range serving {
		_, group, _ := strings.Cut(name, ".")
		groups = append(groups, group)
	}
	served, complete := s.Reader.ServedIn(groups...)
	if !complete {
		s.problem(teardown.Problem{Reason: "Unreadable", Refuses: true,
			Text: "whether the cluster serves other clusters is not known: not all kinds could be discovered"})
	}
	for _, resource := range served {
		name := resource.GroupResource().String()
		project, is := serving[name]
		if !is {
			continue
		}
		objects, seen := s.Reader.Metadata(ctx, resource.GroupVersionResource, "")
		if !seen {
			s.problem(teardown.Problem{Reason: "Unreadable", Refuses: true,
				Text: "whether the cluster serves other clusters is not known: " + name + " could not be read"})
		}
		if len(objects) == 0 {
			continue
		}
		s.problem(teardown.Problem{Reason: "ServesClusters", Refuses: true, Text: fmt.Sprintf("the cluster serves %s of %s, such as "+
			"%s: what they use would be deleted; delete or move them first", terminal.Count(len(objects), "cluster"), project,
			objects[0].Name), Next: s.Commands.Kubectl("", "get", name, "--all-namespaces")})
	}
}

// addLeading refuses to delete the load balancer in front of the API server (#33).
func (s *survey) addLeading() {
	for i := range s.plan.Items {
		if item := &s.plan.Items[i]; item.Reason == string(balancer.LeadsToAPI) {
			s.problem(teardown.Problem{Reason: string(balancer.LeadsToAPI), Refuses: true, Text: fmt.Sprintf("%s %s/%s has the address "+
				"%s of the API server that this command uses: reach the API server by another address, or take its type or class away",
				item.Object.Kind, item.Object.Namespace, item.Object.Name, item.ExternalID)})
		}
	}
}

// addMissing refuses names that do not exist: a typo would cost a disk.
func (s *survey) addMissing(complete bool) {
	missing := func(reason, flag string, target Target) {
		text := fmt.Sprintf("%s: there is no %s", flag, target)
		if !complete {
			text = fmt.Sprintf("%s: %s was not seen, as not all was read", flag, target)
		}
		s.problem(teardown.Problem{Reason: reason, Refuses: true, Text: text})
	}
	for _, target := range s.Preserve {
		if !s.found[target] {
			missing("PreserveMissing", "--preserve", target)
		}
	}
	for _, name := range s.Last {
		if target := (Target{Kind: "Namespace", Name: name}); !s.found[target] {
			missing("LastMissing", "--last", target)
		}
	}
}

// String returns the target as a person would name it.
func (t Target) String() string {
	words := slices.DeleteFunc([]string{t.Namespace, t.Name}, func(word string) bool { return word == "" })
	return fmt.Sprintf("%s %q", t.Kind, strings.Join(words, "/"))
}
