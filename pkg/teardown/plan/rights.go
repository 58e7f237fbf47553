package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// role is the ClusterRole, and the Role, with the rights of the runner.
const role = "exeunt-teardown"

// right is one request that a teardown sends.
type right struct{ group, resource, verb, name, namespace string }

// ofPerson returns the rights of a person who gives the word, beside those of a runner: what the command installs, and
// the labels that --preserve sets.
func (s *survey) ofPerson() []right {
	var rights []right
	if !s.installed {
		const group = "admissionregistration.k8s.io"
		for _, verb := range []string{"get", "create", "patch"} {
			rights = append(rights, right{"apiextensions.k8s.io", "customresourcedefinitions", verb, alive.CRD, ""},
				right{"", "namespaces", verb, teardown.Namespace, ""})
			for _, name := range []string{teardown.GuardName, teardown.DefinitionGuardName} {
				rights = append(rights, right{group, "validatingadmissionpolicies", verb, name, ""},
					right{group, "validatingadmissionpolicybindings", verb, name, ""})
			}
		}
	}
	for _, target := range s.Preserve {
		if ref, known := s.Reader.Find(versions[target.Kind], target.Kind, target.Namespace, target.Name); known {
			rights = append(rights, right{ref.Resource.Group, ref.Resource.Resource, "patch", ref.Name, ref.Namespace})
		}
	}
	return rights
}

// MissingRights returns the rights that the user of the reader lacks for a teardown, as rules.
func MissingRights(ctx context.Context, reader *cluster.Reader) ([]string, error) {
	return missingOf(ctx, reader, nil)
}

// missingOf is MissingRights with further rights.
func missingOf(ctx context.Context, reader *cluster.Reader, further []right) ([]string, error) {
	all, err := isAllowed(ctx, reader, right{group: "*", resource: "*", verb: "*"})
	if err != nil || all {
		return nil, err
	}
	rights, err := documented()
	if err != nil {
		return nil, err
	}
	rights = append(ofServed(reader, rights), further...)
	allowed := make([]bool, len(rights))
	var group errgroup.Group
	group.SetLimit(8)
	for i := range rights {
		group.Go(func() (err error) {
			allowed[i], err = isAllowed(ctx, reader, rights[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return rules(rights, allowed), nil
}

// ofServed drops the rights on kinds that a cluster may lack, and that this one does not serve.
func ofServed(reader *cluster.Reader, rights []right) []right {
	optional := []string{snapshotGroup, "groupsnapshot.storage.k8s.io", gatewayGroup}
	for name := range serving {
		_, group, _ := strings.Cut(name, ".")
		optional = append(optional, group)
	}
	served, complete := reader.Apart().ServedIn(optional...)
	if !complete {
		return rights
	}
	return slices.DeleteFunc(rights, func(r right) bool {
		return slices.Contains(optional, r.group) && !slices.ContainsFunc(served, func(s cluster.Resource) bool {
			return s.Group == r.group && (r.resource == "*" || s.Resource == r.resource)
		})
	})
}

// documented returns the rights of the runner, as deploy grants them, and those of a person who gives the word.
func documented() ([]right, error) {
	const manifest = "alive/rbac.yaml"
	text, err := deploy.AliveRights.ReadFile(manifest)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", manifest, err)
	}
	rights := []right{{group: alive.Group, resource: "alives", verb: "delete", name: alive.Name}}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var found rbacv1.ClusterRole // a Role has the same fields
		if err := yaml.Unmarshal([]byte(document), &found); err != nil {
			return nil, fmt.Errorf("decode %s: %w", manifest, err)
		}
		if found.Name != role || found.Kind != "ClusterRole" && found.Kind != "Role" {
			continue
		}
		for i := range found.Rules {
			rights = append(rights, rightsOf(&found.Rules[i], found.Namespace)...)
		}
	}
	return rights, nil
}

func rightsOf(rule *rbacv1.PolicyRule, namespace string) (rights []right) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					rights = append(rights, right{group, resource, verb, name, namespace})
				}
			}
		}
	}
	return rights
}

// rules returns the rights that are missing, the verbs of a resource in one rule.
func rules(rights []right, allowed []bool) []string {
	var order []right
	verbs := map[right][]string{}
	for i, missing := range rights {
		if allowed[i] {
			continue
		}
		of := missing
		of.verb = ""
		if verbs[of] == nil {
			order = append(order, of)
		}
		if !slices.Contains(verbs[of], missing.verb) {
			verbs[of] = append(verbs[of], missing.verb)
		}
	}
	var all []string
	for _, of := range order {
		rule := fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%s]", of.group, of.resource, strings.Join(verbs[of], ", "))
		if of.name != "" {
			rule += fmt.Sprintf(", resourceNames: [%s]", of.name)
		}
		rule += "}"
		if of.namespace != "" {
			rule += " in namespace " + of.namespace
		}
		all = append(all, rule)
	}
	return all
}

// isAllowed asks the API server.
func isAllowed(ctx context.Context, reader *cluster.Reader, r right) (bool, error) {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review, err := reader.Kubernetes().AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.namespace, Verb: r.verb, Group: r.group,
				Resource: resource, Subresource: subresource, Name: r.name},
		}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for the right to %s %s: %w", r.verb, r.resource, err)
	}
	return review.Status.Allowed, nil
}
