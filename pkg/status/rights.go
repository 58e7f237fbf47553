package status

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// right is one request that a program sends.
type right struct {
	group, resource, verb string
	// namespace is "" for all namespaces, name "" for all names.
	namespace, name string
	// alternative is a verb that serves as well, "" for none.
	alternative string
}

// String describes the right as an administrator grants it.
func (r right) String() string {
	text := r.verb + " " + r.resource
	if r.group != "" {
		text += "." + r.group
	}
	if r.name != "" {
		text += " " + r.name
	}
	if r.namespace != "" {
		return text + " in namespace " + r.namespace
	}
	return text
}

// missingRights returns what the service accounts of deploy, and those that the user named,
// are not allowed to do.
func (s *survey) missingRights(ctx context.Context) []string {
	var missing []string
	namespaces, seen := s.installedIn(ctx, deploy.PVController)
	if seen && len(namespaces) == 0 {
		namespaces = []string{deploy.Namespace} // as the manifests would install it
	}
	for _, namespace := range namespaces {
		missing = append(missing, s.missingOf(ctx, namespace, deploy.PVController, "pv-controller/rbac.yaml",
			"pv-controller/serving-rbac.yaml")...)
	}
	namespaces, _ = s.installedIn(ctx, deploy.Provisioner)
	for _, namespace := range namespaces {
		missing = append(missing, s.missingOf(ctx, namespace, deploy.Provisioner, "provisioner/rbac.yaml")...)
	}
	for _, account := range s.Accounts {
		namespace, name, _ := strings.Cut(account, "/")
		missing = append(missing, s.missing(ctx, namespace, name,
			likeUpstream(s.documented(namespace, "provisioner/rbac.yaml")))...)
	}
	return missing
}

// likeUpstream returns the rights that the manifests of csi-provisioner v6.3 grant as well: with them an
// account serves every claim that it served before.
func likeUpstream(rights []right) []right {
	var all []right
	for _, r := range rights {
		switch {
		case r.resource == "volumeattributesclasses":
			continue
		case r.verb == "patch" && (r.resource == "persistentvolumeclaims" || r.resource == "volumesnapshots"):
			r.alternative = "update"
		}
		all = append(all, r)
	}
	return all
}

// installedIn returns the namespaces that have the service account of a program: that of the
// manifests, and those of releases of the chart; and whether all namespaces were seen.
func (s *survey) installedIn(ctx context.Context, account string) ([]string, bool) {
	accounts, seen := cluster.List(ctx, s.Reader, cluster.ServiceAccounts,
		cluster.Selection{Fields: "metadata.name=" + account})
	var namespaces []string
	for i := range accounts {
		if accounts[i].Namespace == deploy.Namespace || accounts[i].Labels[deploy.PartOf] == deploy.Project {
			namespaces = append(namespaces, accounts[i].Namespace)
		}
	}
	return namespaces, seen
}

// missingOf asks the API server about each right of the manifests for the service account.
func (s *survey) missingOf(ctx context.Context, namespace, account string, manifests ...string) []string {
	return s.missing(ctx, namespace, account, s.documented(namespace, manifests...))
}

// documented returns the rights that manifests of deploy grant to an account in the namespace.
func (s *survey) documented(namespace string, manifests ...string) []right {
	var rights []right
	for _, manifest := range manifests {
		found, err := rightsIn(deploy.Manifests, manifest, namespace)
		if err != nil {
			s.Reader.Note("could not read the documented rights: %v", err)
		}
		rights = append(rights, found...)
	}
	return rights
}

// missing returns which of the rights the API server refuses to the service account.
func (s *survey) missing(ctx context.Context, namespace, account string, rights []right) []string {
	refused, err := s.refused(ctx, namespace, account, rights)
	if err != nil {
		s.Reader.Note("%s", rightsSentence(err))
		return nil
	}
	var missing []string
	for _, right := range refused {
		missing = append(missing, fmt.Sprintf("%s/%s may not %s", namespace, account, right))
	}
	return missing
}

// refused returns the rights that the service account does not have.
func (s *survey) refused(ctx context.Context, namespace, account string, rights []right) ([]right, error) {
	allowed, failures := make([]bool, len(rights)), make([]error, len(rights))
	var group errgroup.Group
	group.SetLimit(8)
	for i, right := range rights {
		group.Go(func() error {
			allowed[i], failures[i] = s.isAllowed(ctx, namespace, account, right)
			if right.alternative != "" && !allowed[i] && failures[i] == nil {
				right.verb = right.alternative
				allowed[i], failures[i] = s.isAllowed(ctx, namespace, account, right)
			}
			return nil
		})
	}
	_ = group.Wait()
	if i := slices.IndexFunc(failures, func(err error) bool { return err != nil }); i >= 0 {
		return nil, failures[i]
	}
	var missing []right
	for i, right := range rights {
		if !allowed[i] {
			missing = append(missing, right)
		}
	}
	return missing, nil
}

// rightsSentence says why rights could not be read.
func rightsSentence(err error) string {
	if apierrors.IsForbidden(err) {
		return "no right to create subjectaccessreviews; grant the rule {apiGroups: [authorization.k8s.io], " +
			"resources: [subjectaccessreviews], verbs: [create]}"
	}
	return fmt.Sprintf("could not ask for the rights of the programs: %v", err)
}

// isAllowed asks the API server.
func (s *survey) isAllowed(ctx context.Context, namespace, account string, r right) (bool, error) {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review, err := s.Reader.Kubernetes().AuthorizationV1().SubjectAccessReviews().
		Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:" + namespace + ":" + account,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource, Name: r.name,
				},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// rightsIn returns the rights that a manifest of deploy grants to the account in the namespace.
func rightsIn(files embed.FS, manifest, namespace string) ([]right, error) {
	text, err := files.ReadFile(manifest)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", manifest, err)
	}
	var all []right
	for _, document := range strings.Split(string(text), "\n---\n") {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, fmt.Errorf("decode %s: %w", manifest, err)
		}
		scope := ""
		if role.Kind == "Role" {
			scope = role.Namespace
			if scope == deploy.Namespace {
				scope = namespace
			}
		}
		for _, rule := range role.Rules {
			all = append(all, rightsOf(rule, scope)...)
		}
	}
	return all, nil
}

// rightsOf returns the rights of a rule.
func rightsOf(rule rbacv1.PolicyRule, namespace string) []right {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []right
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, right{group: group, resource: resource, verb: verb, namespace: namespace, name: name})
				}
			}
		}
	}
	return all
}
