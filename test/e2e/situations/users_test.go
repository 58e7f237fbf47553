package situations

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/reference"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// whyTimeout is the default of the flag --timeout.
const whyTimeout = 30 * time.Second

// explain explains the object as the user within this process, with the packages that
// "exeunt why" calls: a process of its own costs more than the explanation. An empty user is
// the administrator; the flag --as of the arguments has precedence.
func (r *place) explain(user string, args []string) (blocker.Report, error) {
	r.T.Helper()
	flags := pflag.NewFlagSet("why", pflag.ContinueOnError)
	probe := flags.Bool("probe", false, "")
	as := flags.String("as", user, "")
	r.Must(flags.Parse(args), "parse arguments")
	config := r.Plane.RESTConfig()
	config.AcceptContentTypes, config.ContentType = "", "" // as in a kubeconfig
	config.Impersonate.UserName = *as
	config.Timeout = whyTimeout
	ctx, cancel := context.WithTimeout(r.Ctx, whyTimeout)
	defer cancel()
	reader, err := cluster.NewReader(config)
	if err != nil {
		return blocker.Report{}, err
	}
	explorer := why.NewExplorer(reader, cluster.Commands{}, *probe)
	refs, err := reference.NewResolver(reader, r.Namespace, true).Words(flags.Args())
	if err != nil {
		return blocker.Report{}, err
	}
	return explorer.Explain(ctx, refs[0])
}

// knownUsers are the users whose rights the API server knows, by the directory of its cluster.
var knownUsers sync.Map

// createUserWithout returns a user who may read everything but the resources of one rule.
func (r *place) createUserWithout(missing int) string {
	r.T.Helper()
	name := "without-" + strings.Join(rights[missing].Resources, "-")
	if _, known := knownUsers.Load(r.Dir + name); known {
		return name
	}
	r.createUser(name, slices.Concat(objectRights, slices.Delete(slices.Clone(rights), missing, missing+1)))
	knownUsers.Store(r.Dir+name, true)
	return name
}

// createUser creates a user with the rules and waits until the API server grants them: a
// request before that would be refused for all resources.
func (r *place) createUser(name string, rules []rbacv1.PolicyRule) {
	r.T.Helper()
	named := metav1.ObjectMeta{Name: name, Labels: map[string]string{harness.StaysLabel: "user"}}
	_, err := r.Client.RbacV1().ClusterRoles().Create(r.Ctx, &rbacv1.ClusterRole{ObjectMeta: named, Rules: rules},
		metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		r.Must(err, "create role")
	}
	_, err = r.Client.RbacV1().ClusterRoleBindings().Create(r.Ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: named,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		r.Must(err, "create binding")
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: name, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Group: rules[0].APIGroups[0],
			Resource: rules[0].Resources[0]},
	}}
	r.Until("user "+name+" has rights", func() bool {
		answer, err := r.Client.AuthorizationV1().SubjectAccessReviews().Create(r.Ctx, review, metav1.CreateOptions{})
		r.Must(err, "review access")
		return answer.Status.Allowed
	})
}
