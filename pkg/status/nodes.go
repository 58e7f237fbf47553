package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/nodes"
)

// Nodes are the nodes of node-terminator.
type Nodes struct {
	// Labeled have the label with their period, Protected our finalizer. Terminating have the finalizer and are deleted.
	Labeled     int `json:"labeled"`
	Protected   int `json:"protected"`
	Terminating int `json:"terminating"`
	// Program is "alive", "gone" or "unseen", "" if no node has the finalizer.
	Program string `json:"program"`
	// Findings are sentences about what is not as it should be. They say nothing about volumes.
	Findings []string `json:"findings"`
	// Unseen names what could not be read.
	Unseen []string `json:"unseen"`
}

func (n *Nodes) find(format string, values ...any) {
	n.Findings = append(n.Findings, fmt.Sprintf(format, values...))
}

// addNodes adds the nodes of node-terminator, if a node has its label or its finalizer.
func (s *survey) addNodes(ctx context.Context) {
	found := &Nodes{Findings: []string{}, Unseen: []string{}}
	all, err := s.readNodes(ctx, found)
	if err != nil {
		found.Unseen = append(found.Unseen, cluster.Failure("list", cluster.Nodes.Resource, "", err))
		s.report.Nodes = found
		return
	}
	if found.Labeled+found.Protected == 0 {
		return
	}
	s.report.Nodes = found
	s.findInvalid(found, all)
	s.findProgram(ctx, found, all)
	s.findOverdue(ctx, found, all)
	s.findMissingRights(ctx, found)
}

// readNodes returns the nodes with our label or finalizer. It asks past the Reader: what a user may not read of nodes says
// nothing about volumes.
func (s *survey) readNodes(ctx context.Context, found *Nodes) ([]corev1.Node, error) {
	var all []corev1.Node
	options := metav1.ListOptions{Limit: cluster.PageSize}
	for {
		list, err := s.Reader.Kubernetes().CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if found.count(&list.Items[i]) {
				all = append(all, list.Items[i])
			}
		}
		if options.Continue = list.Continue; list.Continue == "" {
			return all, nil
		}
	}
}

// count counts the node, and reports whether it is one of node-terminator.
func (n *Nodes) count(node *corev1.Node) bool {
	_, labeled := node.Labels[termination.Label]
	protected := termination.Protected(node)
	if labeled {
		n.Labeled++
	}
	if protected {
		n.Protected++
		if node.DeletionTimestamp != nil {
			n.Terminating++
		}
	}
	return labeled || protected
}

// findInvalid finds labels that are not served.
func (s *survey) findInvalid(found *Nodes, all []corev1.Node) {
	for i := range all {
		if _, _, err := termination.PeriodOf(&all[i]); err != nil {
			found.find("node %s is not served: %v", all[i].Name, err)
		}
	}
}

// findProgram finds out whether node-terminator lives: without it no node with its finalizer can be deleted.
func (s *survey) findProgram(ctx context.Context, found *Nodes, all []corev1.Node) {
	if found.Protected == 0 {
		return
	}
	finding := s.finder.LookAll(ctx, families.Named(termination.Finalizer)[0].Controllers(), "")
	reason, verdict := blocker.JudgeController(finding.State)
	what := ""
	switch {
	case reason == blocker.ControllerActs:
		found.Program = "alive"
		return
	case verdict == blocker.Stuck && reason == blocker.ControllerGone:
		found.Program, what = "gone", "is gone"
	case finding.State.Workload == blocker.WorkloadUnseen || finding.State.Lease == blocker.LeaseUnseen:
		found.Program = "unseen"
		found.Unseen = append(found.Unseen, fmt.Sprintf("whether node-terminator runs, without which none of %s with its finalizer "+
			"can be deleted", terminal.Count(found.Protected, "node")))
		return
	default:
		found.Program, what = "unseen", "was not seen at work"
	}
	var names []string
	for i := range all {
		if termination.Protected(&all[i]) && len(names) < examples {
			names = append(names, all[i].Name)
		}
	}
	found.find("the finalizer %s is on %s (%s), and node-terminator %s: none of them can be deleted. Start it again, or take "+
		"the finalizer off:\n%s", termination.Finalizer, terminal.Count(found.Protected, "node"), strings.Join(names, ", "),
		what, s.Commands.Exeunt("", "rollback", "nodes", "--confirm"))
}

// overdueAfter is how long after its deadline a node may still be there.
const overdueAfter = time.Minute

// findOverdue finds terminations that are past their deadline, by their reports.
func (s *survey) findOverdue(ctx context.Context, found *Nodes, all []corev1.Node) {
	reports, err := nodes.Reports(ctx, s.Reader, "")
	if err != nil {
		found.Unseen = append(found.Unseen, cluster.Failure("list", corev1.Resource("configmaps"), deploy.Namespace, err))
		return
	}
	for _, report := range reports {
		lives := slices.ContainsFunc(all, func(n corev1.Node) bool { return string(n.UID) == report.UID })
		if !lives || report.Deadline == nil {
			continue
		}
		if late := s.Reader.Now().Sub(*report.Deadline); late > overdueAfter {
			found.find("node %s is overdue by %s: %s %s\n%s", report.Node, late.Truncate(time.Second), report.Phase, report.Reason,
				s.Commands.Exeunt("", "why", "node/"+report.Node))
		}
	}
}

// findMissingRights asks which of its documented rights node-terminator lacks.
func (s *survey) findMissingRights(ctx context.Context, found *Nodes) {
	deployments, _ := cluster.List(ctx, s.Reader, cluster.Deployments, cluster.Selection{})
	for i := range deployments {
		d := &deployments[i]
		if !isTerminator(d) {
			continue
		}
		for _, manifest := range []string{"node-terminator/rbac.yaml", "node-terminator/serving-rbac.yaml"} {
			rights, err := rightsIn(deploy.NodeTerminator, manifest, d.Namespace)
			if err == nil {
				err = s.findMissing(ctx, found, d, rights)
			}
			if err != nil {
				found.Unseen = append(found.Unseen, rightsSentence(err))
				return
			}
		}
	}
}

func isTerminator(d *appsv1.Deployment) bool {
	return d.Labels["app.kubernetes.io/name"] == deploy.NodeTerminatorAccount && d.Labels[deploy.PartOf] == deploy.Project
}

func (s *survey) findMissing(ctx context.Context, found *Nodes, d *appsv1.Deployment, rights []right) error {
	account := d.Spec.Template.Spec.ServiceAccountName
	missing, err := s.refused(ctx, d.Namespace, account, rights)
	for _, right := range missing {
		found.find("%s/%s may not %s", d.Namespace, account, right)
	}
	return err
}

// describe says how many nodes there are, and whether the program lives.
func (n *Nodes) describe() string {
	if n.Labeled+n.Protected == 0 {
		return "not seen"
	}
	text := fmt.Sprintf("%d with the label, %d with the finalizer, %d being deleted", n.Labeled, n.Protected, n.Terminating)
	if n.Program != "" {
		text += "; node-terminator is " + n.Program
	}
	return text
}
