package alive

import (
	"context"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The users of the tests.
const (
	// admin may do everything.
	admin = ""
	// participant has the rights of an operator that takes part.
	participant = "participant"
	// writer may also write the status.
	writer = "writer"
	// controller is alive-controller.
	controller = "system:serviceaccount:" + deploy.Namespace + ":" + deploy.AliveController
	// armed is another user with the rights of an armed alive-controller.
	armed = "armed"
)

// rig is a control plane with Alive and its guards.
type rig struct {
	*testing.T
	ctx   context.Context
	plane *sandbox.ControlPlane
	// id is the ID of the cluster.
	id types.UID
	// marks counts the states of the policies.
	marks int
}

// start starts a control plane with the manifests. No other program runs.
func start(t *testing.T, manifests ...fs.FS) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Timeout)
	t.Cleanup(cancel)
	plane, err := sandbox.StartControlPlane(ctx, sandbox.Config{Binaries: harness.Binaries(), Dir: t.TempDir(), NoAuditLog: true})
	r := &rig{T: t, ctx: ctx, plane: plane}
	r.must(err, "start control plane")
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Errorf("stop control plane: %v", err)
		}
	})
	r.must(harness.CheckVersion(plane), "check version")
	for _, files := range manifests {
		r.must(sandbox.Apply(ctx, plane.RESTConfig(), files), "apply manifests")
	}
	r.until("the ID of the cluster is known", func() bool {
		system, err := plane.Client().CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err == nil {
			r.id = system.UID
		}
		return err == nil
	})
	return r
}

// startGuarded starts a control plane with Alive, its guards, and the rights of the users.
func startGuarded(t *testing.T) *rig {
	t.Helper()
	r := start(t, deploy.Alive, deploy.AliveRights)
	r.bind(participant, "exeunt-alive-participant")
	r.bind(writer, "exeunt-alive-participant")
	r.bind(writer, r.role(rbacv1.PolicyRule{APIGroups: []string{alive.Group}, Resources: []string{"alives/status"},
		Verbs: []string{"patch", "update"}}))
	r.bind(armed, "exeunt-alive")
	r.bind(armed, "exeunt-teardown")
	r.until("the CRD is served", func() bool {
		_, err := r.alives(admin).List(r.ctx, metav1.ListOptions{})
		return err == nil
	})
	r.in(protected)
	r.until("the guards are in force", func() bool {
		err := r.alives(admin).Delete(r.ctx, alive.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err)
	})
	return r
}

func (r *rig) must(err error, what string) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", what, err)
	}
}

func (r *rig) until(what string, holds func() bool) {
	r.Helper()
	err := wait.PollUntilContextCancel(r.ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return holds(), nil })
	r.must(err, "waiting until "+what)
}

// role creates a ClusterRole and returns its name.
func (r *rig) role(rule rbacv1.PolicyRule) string {
	r.Helper()
	role, err := r.plane.Client().RbacV1().ClusterRoles().Create(r.ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	r.must(err, "create role")
	return role.Name
}

// bind gives the user the ClusterRole.
func (r *rig) bind(user, role string) {
	r.Helper()
	_, err := r.plane.Client().RbacV1().ClusterRoleBindings().Create(r.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	r.must(err, "bind role")
}

// dynamic returns a client of the user.
func (r *rig) dynamic(user string) dynamic.Interface {
	r.Helper()
	config := r.plane.RESTConfig()
	config.QPS, config.Burst = 500, 500
	if user != admin {
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	client, err := dynamic.NewForConfig(config)
	r.must(err, "make client")
	return client
}

func (r *rig) alives(user string) dynamic.ResourceInterface {
	r.Helper()
	return r.dynamic(user).Resource(alive.Resource)
}

// patch is a merge patch of Alive by the user.
func (r *rig) patch(user string, change map[string]any, subresources ...string) error {
	r.Helper()
	body, err := json.Marshal(change)
	r.must(err, "encode patch")
	_, err = r.alives(user).Patch(r.ctx, alive.Name, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	return err
}

// get returns Alive, nil if there is none.
func (r *rig) get() *alive.Alive {
	r.Helper()
	object, err := r.alives(admin).Get(r.ctx, alive.Name, metav1.GetOptions{})
	if apierrors.ReasonForError(err) == metav1.StatusReasonNotFound {
		return nil
	}
	r.must(err, "get Alive")
	one, err := alive.FromUnstructured(object)
	r.must(err, "read Alive")
	return one
}

// create creates an Alive as the user.
func (r *rig) create(user string, change func(*alive.Alive)) error {
	r.Helper()
	one := alive.New()
	change(one)
	object, err := alive.ToUnstructured(one)
	r.must(err, "write Alive")
	unstructured.RemoveNestedField(object.Object, "status")
	_, err = r.alives(user).Create(r.ctx, object, metav1.CreateOptions{})
	return err
}

// permission is the spec of an administrator's word.
func (r *rig) permission() map[string]any {
	return map[string]any{"protected": false, "confirm": r.id, "confirmedAt": time.Now().UTC().Format(time.RFC3339)}
}

// state is what Alive is before an attempt.
type state string

const (
	absent      state = "absent"
	protected   state = "protected"
	permitted   state = "permitted"
	unguarded   state = "unguarded" // permitted, without the finalizer
	deleting    state = "deleting"
	started     state = "started"
	complete    state = "complete"
	reprotected state = "protected again"
)

// in brings Alive into the state, as the administrator.
func (r *rig) in(want state) {
	r.Helper()
	if r.get() != nil {
		r.remove()
	}
	if want == absent {
		return
	}
	r.must(r.create(admin, func(a *alive.Alive) { a.Finalizers = append(a.Finalizers, others) }), "create Alive")
	if want == protected {
		return
	}
	r.must(r.patch(admin, map[string]any{"spec": r.permission()}), "permit")
	if want == permitted {
		return
	}
	if want == unguarded {
		r.must(r.patch(admin, finalizers(others)), "remove the finalizer")
		return
	}
	r.must(r.alives(admin).Delete(r.ctx, alive.Name, metav1.DeleteOptions{}), "delete Alive")
	switch want {
	case started:
		r.must(r.patch(admin, condition(alive.ConditionStarted), "status"), "start")
	case complete:
		r.must(r.patch(admin, phase(alive.Complete), "status"), "complete")
	case reprotected:
		r.must(r.patch(admin, map[string]any{"spec": map[string]any{"protected": true}}), "protect")
	default:
	}
}

// others is the finalizer of a participant.
const others = "others.example.com/teardown"

// remove removes Alive in any state: nobody with the right to delete it is locked out.
func (r *rig) remove() {
	r.Helper()
	if !r.get().IsDeleted() {
		r.must(r.patch(admin, finalizers(alive.Finalizer)), "remove finalizers")
		r.must(r.patch(admin, map[string]any{"spec": r.permission()}), "permit")
		r.must(r.alives(admin).Delete(r.ctx, alive.Name, metav1.DeleteOptions{}), "delete Alive")
	}
	if r.get() != nil {
		r.must(r.patch(admin, finalizers()), "remove finalizers")
	}
	r.until("Alive is gone", func() bool { return r.get() == nil })
}

func finalizers(names ...string) map[string]any {
	return map[string]any{"metadata": map[string]any{"finalizers": names}}
}

func phase(phase alive.Phase) map[string]any {
	return map[string]any{"status": map[string]any{"phase": phase}}
}

// condition is a status with the condition, conditions with all of them.
func condition(name string) map[string]any {
	return conditions(metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: "Test",
		LastTransitionTime: metav1.Now()})
}

func conditions(all ...metav1.Condition) map[string]any {
	return map[string]any{"status": map[string]any{"conditions": append([]metav1.Condition{}, all...)}}
}

// denied reports whether the guard of the binding refused the request with 403 and the text.
func denied(err error, binding, text string) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "delete ValidatingAdmissionPolicyBinding "+binding) &&
		strings.Contains(err.Error(), text)
}

// namespace creates a namespace in which pods can be created.
func (r *rig) namespace(name string) string {
	r.Helper()
	_, err := r.plane.Client().CoreV1().Namespaces().Create(r.ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	r.must(err, "create namespace")
	_, err = r.plane.Client().CoreV1().ServiceAccounts(name).Create(r.ctx,
		&v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	r.must(err, "create service account")
	return name
}
