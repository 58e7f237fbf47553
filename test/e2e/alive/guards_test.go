package alive

import (
	"fmt"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

// The guards of policy exeunt-alive, in the order of its validations, by a part of their message.
var guards = []string{
	"a new Alive has protected: true",
	"spec and owners of Alive are changed by those only",
	"spec.confirm is not the ID of this cluster",
	"the cluster is protected",
	"finalizer lifecycle.exeunt.io/teardown is removed in phase Complete",
	"Started and Complete are written while",
}

// attempt is a request about Alive.
type attempt struct {
	name string
	from state
	user string
	do   func(*rig, string) error
	// guard is the only one that refuses the request.
	guard string
}

func (a attempt) String() string {
	return fmt.Sprintf("%s, by %q, Alive is %s", a.name, a.user, a.from)
}

func spec(r *rig, user string, change map[string]any) error {
	return r.patch(user, map[string]any{"spec": change})
}

func protect(r *rig, user string) error { return spec(r, user, map[string]any{"protected": true}) }

func permit(r *rig, user string) error { return spec(r, user, r.permission()) }

func permitWith(id string) func(*rig, string) error {
	return func(r *rig, user string) error {
		change := r.permission()
		change["confirm"] = id
		return spec(r, user, change)
	}
}

func write(change map[string]any, subresources ...string) func(*rig, string) error {
	return func(r *rig, user string) error { return r.patch(user, change, subresources...) }
}

func remove(options metav1.DeleteOptions) func(*rig, string) error {
	return func(r *rig, user string) error { return r.alives(user).Delete(r.ctx, alive.Name, options) }
}

func creation(change func(*rig, *alive.Alive)) func(*rig, string) error {
	return func(r *rig, user string) error {
		return r.create(user, func(a *alive.Alive) { change(r, a) })
	}
}

// owner is an owner that does not exist: the garbage collector would delete what it owns.
func owner() map[string]any {
	return map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"}}}}
}

// row50 are deletions of a protected Alive.
var row50 = []attempt{
	{"#50 delete", protected, admin, remove(metav1.DeleteOptions{}), guards[3]},
	{"#50 delete --force", protected, admin, remove(metav1.DeleteOptions{GracePeriodSeconds: new(int64)}), guards[3]},
	{"#50 delete --cascade=foreground", protected, admin,
		remove(metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}), guards[3]},
	{"#50 delete --all", protected, admin, func(r *rig, user string) error {
		return r.alives(user).DeleteCollection(r.ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}, guards[3]},
	{"#50 delete without the finalizer", unguarded, admin, remove(metav1.DeleteOptions{}), guards[3]},
}

// row51 are permissions for another cluster, and objects that were never protected.
var row51 = []attempt{
	{"#51 permit with another ID", protected, admin, permitWith("0f8e1b1c-6d5c-4d52-9c53-5e8d4e2f0a11"), guards[2]},
	{"#51 permit with the name of a context", protected, admin, permitWith("production"), guards[2]},
	{"#51 permit with nothing", protected, admin, permitWith(""), guards[2]},
	{"#51 another ID later", permitted, admin, permitWith("production"), guards[2]},
	{"#51 create unprotected", absent, admin, creation(func(r *rig, a *alive.Alive) {
		a.Spec = alive.Spec{Protected: new(false), Confirm: r.id, ConfirmedAt: new(metav1.Now())}
	}), guards[0]},
	{"#51 create without the finalizer", absent, admin, creation(func(_ *rig, a *alive.Alive) { a.Finalizers = nil }), guards[0]},
	{"#51 create with another finalizer", absent, admin,
		creation(func(_ *rig, a *alive.Alive) { a.Finalizers = []string{others} }), guards[0]},
	{"#51 create with an owner", absent, admin, creation(func(_ *rig, a *alive.Alive) {
		a.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "gone"}}
	}), guards[0]},
}

// row53 are writes by programs that may not delete Alive.
var row53 = []attempt{
	{"#53 permit", protected, participant, permit, guards[1]},
	{"#53 longer timeout", permitted, participant, write(map[string]any{"spec": map[string]any{"timeout": "24h"}}), guards[1]},
	{"#53 protect", permitted, participant, protect, guards[1]},
	{"#53 protect", deleting, participant, protect, guards[1]},
	{"#53 absent owner", permitted, participant, write(owner()), guards[1]},
	{"#53 permit", protected, armed, permit, guards[1]},
	{"#53 permit again", reprotected, armed, permit, guards[1]},
	{"#53 finalizer removed", protected, participant, write(finalizers(others)), guards[4]},
	{"#53 finalizer removed", deleting, participant, write(finalizers()), guards[4]},
	{"#53 finalizer removed", deleting, armed, write(finalizers(others)), guards[4]},
	{"#53 Complete", protected, writer, write(phase(alive.Complete), "status"), guards[5]},
	{"#53 Complete", deleting, writer, write(phase(alive.Complete), "status"), guards[5]},
	{"#53 Started", deleting, writer, write(condition(alive.ConditionStarted), "status"), guards[5]},
	{"#53 Started", deleting, controller, write(condition(alive.ConditionStarted), "status"), guards[5]},
	{"#53 Started", permitted, armed, write(condition(alive.ConditionStarted), "status"), guards[5]},
	{"#53 Started", reprotected, armed, write(condition(alive.ConditionStarted), "status"), guards[5]},
	{"#53 Complete", permitted, admin, write(phase(alive.Complete), "status"), guards[5]},
	{"#53 Started taken back", started, writer, write(conditions(), "status"), guards[5]},
	{"#53 Started taken back", started, controller, write(conditions(), "status"), guards[5]},
}

// unauthorized are requests that RBAC refuses.
var unauthorized = []attempt{
	{"delete", permitted, participant, remove(metav1.DeleteOptions{}), ""},
	{"delete", permitted, controller, remove(metav1.DeleteOptions{}), ""},
	{"delete", permitted, armed, remove(metav1.DeleteOptions{}), ""},
	{"Started", deleting, participant, write(condition(alive.ConditionStarted), "status"), ""},
	{"Complete", deleting, participant, write(phase(alive.Complete), "status"), ""},
	{"create", absent, participant, creation(func(*rig, *alive.Alive) {}), ""},
	{"finalizer removed", complete, controller, write(finalizers(others)), ""},
}

// allowed are what everybody's work needs.
var allowed = []attempt{
	{"create", absent, controller, creation(func(*rig, *alive.Alive) {}), ""},
	{"Ready", protected, controller, write(condition(alive.ConditionReady), "status"), ""},
	{"Armed", permitted, controller, write(phase(alive.Armed), "status"), ""},
	{"permit", protected, admin, permit, ""},
	{"protect", permitted, admin, protect, ""},
	{"protect", deleting, admin, protect, ""},
	{"delete", permitted, admin, remove(metav1.DeleteOptions{}), ""},
	{"delete again", reprotected, admin, remove(metav1.DeleteOptions{}), ""},
	{"#52 delete after the deadline", permitted, admin, func(r *rig, user string) error {
		r.must(spec(r, user, map[string]any{"confirmedAt": "2026-03-01T12:00:00Z"}), "permit in March")
		return remove(metav1.DeleteOptions{})(r, user)
	}, ""},
	{"Started", deleting, armed, write(condition(alive.ConditionStarted), "status"), ""},
	{"Complete", deleting, armed, write(phase(alive.Complete), "status"), ""},
	{"Stopped", started, controller, write(phase(alive.Stopped), "status"), ""},
	{"finalizer removed", complete, armed, write(finalizers(others)), ""},
	{"finalizer removed", protected, admin, write(finalizers(others)), ""},
	{"#53 another finalizer added", protected, participant, write(finalizers(alive.Finalizer, others, "p.example.com/f")), ""},
	{"#53 another finalizer removed", deleting, participant, write(finalizers(alive.Finalizer)), ""},
	{"#53 annotation", deleting, participant,
		write(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"p.example.com/f": "p: buckets"}}}), ""},
}

func TestGuardsOfAlive(t *testing.T) {
	r := startGuarded(t)
	for _, a := range slices.Concat(row50, row51, row53) {
		r.try(a, func(err error) bool { return denied(err, "exeunt-alive", a.guard) })
	}
	for _, a := range unauthorized {
		r.try(a, func(err error) bool { return apierrors.IsForbidden(err) && !denied(err, "exeunt-alive", "") })
	}
	for _, a := range allowed {
		r.in(a.from)
		if err := a.do(r, a.user); err != nil {
			t.Errorf("%s: %v, want it allowed", a, err)
		}
	}
}

// try makes an attempt that must be refused and change nothing.
func (r *rig) try(a attempt, refused func(error) bool) {
	r.Helper()
	r.in(a.from)
	before := r.get()
	if err := a.do(r, a.user); !refused(err) {
		r.Errorf("%s: the answer is %v, want it refused by %q", a, err, a.guard)
	}
	after := r.get()
	if (before == nil) != (after == nil) || before != nil && before.ResourceVersion != after.ResourceVersion {
		r.Errorf("%s: Alive has changed: %+v", a, after)
	}
}

// Each guard stands alone: it refuses its attempts while all other guards are off, and nothing else refuses them.
func TestEachGuardOfAliveStandsAlone(t *testing.T) {
	r := startGuarded(t)
	r.must(r.plane.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(r.ctx,
		"exeunt-alive-definition", metav1.DeleteOptions{}), "delete binding of the CRD's policy")
	validations := r.policy().Spec.Validations
	if len(validations) != len(guards) {
		t.Fatalf("the policy has %d validations, the test %d", len(validations), len(guards))
	}
	for i, guard := range guards {
		attempts := slices.DeleteFunc(slices.Concat(row50, row51, row53), func(a attempt) bool { return a.guard != guard })
		if len(attempts) == 0 {
			t.Errorf("no attempt meets the guard %q", guard)
		}
		r.setValidations(validations[i])
		for _, a := range attempts {
			r.try(a, func(err error) bool { return denied(err, "exeunt-alive", guard) })
		}
		r.setValidations(slices.Delete(slices.Clone(validations), i, i+1)...)
		for _, a := range attempts {
			r.in(a.from)
			if err := a.do(r, a.user); err != nil {
				t.Errorf("%s: without the guard %q the answer is %v, want it allowed", a, guard, err)
			}
		}
	}
}

func (r *rig) policy() *admissionv1.ValidatingAdmissionPolicy {
	r.Helper()
	policy, err := r.plane.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(r.ctx, "exeunt-alive",
		metav1.GetOptions{})
	r.must(err, "get policy")
	return policy
}

// setValidations replaces the validations of policy exeunt-alive, and returns once they are in force. A mark tells.
func (r *rig) setValidations(validations ...admissionv1.Validation) {
	r.Helper()
	r.marks++
	mark := fmt.Sprintf("mark-%d", r.marks)
	policy := r.policy()
	policy.Spec.Validations = append(slices.Clone(validations), admissionv1.Validation{
		Expression: "request.operation != 'UPDATE' || !('" + mark + "' in object.metadata.?labels.orValue({}))", Message: mark})
	_, err := r.plane.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Update(r.ctx, policy,
		metav1.UpdateOptions{})
	r.must(err, "change policy")
	if r.get() == nil {
		r.in(protected)
	}
	marked := fmt.Appendf(nil, `{"metadata":{"labels":{%q:""}}}`, mark)
	r.until("the policy is in force", func() bool {
		_, err := r.alives(admin).Patch(r.ctx, alive.Name, types.MergePatchType, marked,
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
}
