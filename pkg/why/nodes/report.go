package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Report is the report of one termination, and the ConfigMap that has it.
type Report struct {
	termination.Report
	Namespace, Name string
}

// Reports returns the reports of node-terminator about the node, "" for all nodes, the newest first. Who may not list
// ConfigMaps in all namespaces gets those of the usual one. The error says that they could not be read.
func Reports(ctx context.Context, reader *cluster.Reader, node string) ([]Report, error) {
	selector := termination.ReportLabel
	if node != "" && len(validation.IsValidLabelValue(node)) == 0 {
		selector += "=" + node
	}
	found, err := reportsIn(ctx, reader, metav1.NamespaceAll, selector)
	if apierrors.IsForbidden(err) {
		found, err = reportsIn(ctx, reader, deploy.Namespace, selector)
	}
	found = slices.DeleteFunc(found, func(r Report) bool { return node != "" && r.Node != node })
	slices.SortStableFunc(found, func(a, b Report) int { return b.Requested.Compare(a.Requested) })
	return found, err
}

func reportsIn(ctx context.Context, reader *cluster.Reader, namespace, selector string) ([]Report, error) {
	var found []Report
	options := metav1.ListOptions{LabelSelector: selector, Limit: cluster.PageSize}
	for {
		list, err := reader.Kubernetes().CoreV1().ConfigMaps(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if report, is := reportOf(&list.Items[i]); is {
				found = append(found, report)
			}
		}
		if options.Continue = list.Continue; list.Continue == "" {
			return found, nil
		}
	}
}

func reportOf(object *corev1.ConfigMap) (Report, bool) {
	report := Report{Namespace: object.Namespace, Name: object.Name}
	err := json.Unmarshal([]byte(object.Data[termination.ReportKey]), &report.Report)
	return report, err == nil && report.Node != ""
}

// namedPods is how many pods of a report are named.
const namedPods = 10

// evidence says what the report tells: phase and counts, who was cut short, and what is left.
func (r Report) evidence() []blocker.Evidence {
	add := func(all []blocker.Evidence, format string, values ...any) []blocker.Evidence {
		return append(all, blocker.Evidence{Source: blocker.FromField, Text: fmt.Sprintf(format, values...)})
	}
	c := r.Counts
	var all []blocker.Evidence
	all = add(all, "ConfigMap %s/%s: %s %s; pods evicted %d, deleted %d, cut short %d, removed %d, ended by others %d, "+
		"finished %d, with the node %d, unknown %d, left %d", r.Namespace, r.Name, r.Phase, r.Reason, c.Evicted, c.Deleted,
		c.CutShort, c.Removed, c.Others, c.Finished, c.WithNode, c.Unknown, c.Left)
	if r.OverdueSeconds > 0 {
		all = add(all, "the machine ran for %d s after its deadline", r.OverdueSeconds)
	}
	for i, cut := range r.CutShort {
		if i == namedPods {
			all = add(all, "and %d more were cut short", c.CutShort-namedPods)
			break
		}
		why := cut.Reason
		if cut.Budget != "" {
			why += " " + cut.Budget
		}
		all = add(all, "cut short: pod %s got %d s of its grace period, %d s are missing; %s", cut.Pod, cut.Given, cut.Missing, why)
	}
	for i, left := range r.Left {
		if i == namedPods {
			all = add(all, "and %d more are left", len(r.Left)-namedPods)
			break
		}
		all = add(all, "left: pod %s, %s %s", left.Pod, left.Reason, left.Holder)
	}
	return all
}

// Ended returns what the last report tells of a node that is gone, nothing without a report.
func Ended(ctx context.Context, reader *cluster.Reader, commands cluster.Commands, node string) []blocker.Blocker {
	reports, err := Reports(ctx, reader, node)
	if err != nil || len(reports) == 0 {
		return nil
	}
	last := reports[0]
	return []blocker.Blocker{{
		Object: blocker.Object{Kind: "Node", Name: node, UID: last.UID}, Reason: blocker.NodeEnded, Verdict: blocker.Gone,
		Holder: "node-terminator", Since: blocker.Time(last.Requested), Evidence: last.evidence(),
		Next: cluster.Steps("nothing waits; the report names each pod that was cut short, and what is left",
			commands.Kubectl(last.Namespace, "get", "configmap", last.Name, "-o", "jsonpath={.data}")),
	}}
}
