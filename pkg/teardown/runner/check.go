package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Checker returns the Check of a Config: what the plan says now. Rights are the business of Permitted.
func (c *Clients) Checker(options plan.Options) func(context.Context, *alive.Alive) ([]teardown.Problem, error) {
	return func(ctx context.Context, object *alive.Alive) ([]teardown.Problem, error) {
		reader, err := cluster.NewReader(c.Config) // a Reader remembers what it has read
		if err != nil {
			return nil, err
		}
		asked := options
		asked.Reader, asked.Server, asked.Preserve, asked.Last = reader, c.Config.Host, nil, object.Spec.Last
		problems := plan.Read(ctx, asked).Problems
		return slices.DeleteFunc(problems, func(problem teardown.Problem) bool {
			return problem.Reason == alive.ReasonRightsMissing
		}), context.Cause(ctx)
	}
}

// ofClaims is the right without which no other one is asked for: a program that waits to be armed sends one request.
const ofClaims = `{apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: [delete]}`

// MissingRights is the Permitted of a Config: the rights that a runner lacks, as rules. It need not delete Alive, as a
// person must.
func (c *Clients) MissingRights(ctx context.Context) ([]string, error) {
	may, err := controller.May(ctx, c.Objects, "delete", schema.GroupResource{Resource: "persistentvolumeclaims"}, "")
	if err != nil {
		return nil, err
	}
	if !may {
		return []string{ofClaims}, nil
	}
	reader, err := cluster.NewReader(c.Config)
	if err != nil {
		return nil, err
	}
	rules, err := plan.MissingRights(ctx, reader)
	return slices.DeleteFunc(rules, func(rule string) bool {
		return strings.Contains(rule, `resources: ["alives"], verbs: [delete]`)
	}), err
}

// preserveShared sets the label on volumes whose disks another cluster uses: a runner that leads instead of this one does
// not know the other cluster (#05).
func (r *Runner) preserveShared(ctx context.Context) error {
	if len(r.Shared) == 0 {
		return nil
	}
	volumes, err := answer.CheckedList(r.Objects.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{}))
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	var targets []plan.Target
	for i := range volumes.Items {
		if slices.ContainsFunc(inventory.Handles(&volumes.Items[i]), func(h string) bool { return r.Shared[h] }) {
			targets = append(targets, plan.Target{Kind: "PersistentVolume", Name: volumes.Items[i].Name})
		}
	}
	reader, err := cluster.NewReader(r.Clients.Config)
	if err != nil {
		return err
	}
	return plan.Mark(ctx, reader, targets)
}
