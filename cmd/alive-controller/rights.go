package main

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// rights asks the API server what this process may do, and what refuses a teardown.
type rights struct {
	client kubernetes.Interface
	config *rest.Config
}

// ofClaims is the right without which no other one is asked for: a process that waits to be armed sends one request.
const ofClaims = `{apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: [delete]}`

// missing returns the rights that this process lacks, as rules. A person deletes Alive: this process need not.
func (r rights) missing(ctx context.Context) ([]string, error) {
	may, err := controller.May(ctx, r.client, "delete", schema.GroupResource{Resource: "persistentvolumeclaims"}, "")
	if err != nil {
		return nil, err
	}
	if !may {
		return []string{ofClaims}, nil
	}
	reader, err := cluster.NewReader(r.config)
	if err != nil {
		return nil, err
	}
	rules, err := plan.MissingRights(ctx, reader)
	return slices.DeleteFunc(rules, func(rule string) bool {
		return strings.Contains(rule, `resources: ["alives"], verbs: [delete]`)
	}), err
}

// check returns what refuses a teardown. Rights are the business of missing.
func (r rights) check(ctx context.Context, object *alive.Alive) ([]teardown.Problem, error) {
	reader, err := cluster.NewReader(r.config) // a Reader remembers what it has read
	if err != nil {
		return nil, err
	}
	problems := plan.Read(ctx, plan.Options{Reader: reader, Server: r.config.Host, Last: object.Spec.Last}).Problems
	return slices.DeleteFunc(problems, func(problem teardown.Problem) bool {
		return problem.Reason == alive.ReasonRightsMissing
	}), context.Cause(ctx)
}
