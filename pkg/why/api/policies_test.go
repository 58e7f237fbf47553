package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// readsOnly is an Explorer that reads and writes commands.
type readsOnly struct {
	chain.Explorer
	reader *cluster.Reader
}

func (e readsOnly) Reader() *cluster.Reader  { return e.reader }
func (readsOnly) Commands() cluster.Commands { return cluster.Commands{} }
func (readsOnly) Probe() bool                { return false }

// updatesOf covers updates of the resource of the core group.
func updatesOf(resource string) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}}}}
}

func validating(name, resource string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: updatesOf(resource)}}
}

func mutating(name, resource string) *admissionv1.MutatingAdmissionPolicy {
	return &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{MatchConstraints: updatesOf(resource)}}
}

// withPolicies is a cluster with policies of both kinds.
func withPolicies() clustertest.Objects {
	bind := func(policy string) *admissionv1.ValidatingAdmissionPolicyBinding {
		return &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy + "-b"},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: policy, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			}}
	}
	attach := func(policy string) *admissionv1.MutatingAdmissionPolicyBinding {
		return &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy + "-b"},
			Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy}}
	}
	return clustertest.Objects{
		"validatingadmissionpolicies": {validating("keeps", "persistentvolumes"), validating("unbound", "persistentvolumes"), validating("pods", "pods"),
			validating(deploy.AlivePolicy, "persistentvolumes"), validating(teardown.FreezeName, "persistentvolumes")},
		"validatingadmissionpolicybindings": {bind("keeps"), bind("pods"), bind(deploy.AlivePolicy), bind(teardown.FreezeName)},
		"mutatingadmissionpolicies":         {mutating("restores", "persistentvolumes"), mutating(deploy.Policy, "persistentvolumes")},
		"mutatingadmissionpolicybindings":   {attach("restores"), attach(deploy.Policy)},
	}
}

// servedPolicies are the kinds that an API server with these resources of the admission group serves.
func servedPolicies(resources ...string) map[string][]metav1.APIResource {
	served := map[string][]metav1.APIResource{"v1": {{Name: "persistentvolumes", Kind: "PersistentVolume",
		Verbs: []string{"list"}}}}
	for _, resource := range resources {
		served["admissionregistration.k8s.io/v1"] = append(served["admissionregistration.k8s.io/v1"],
			metav1.APIResource{Name: resource, Kind: resource, Verbs: []string{"list"}})
	}
	return served
}

func TestPoliciesThatMayRefuseAreNamed(t *testing.T) {
	validates, mutates := []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"},
		[]string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}
	for name, tc := range map[string]struct {
		served     []string
		forbidden  string
		want       []string
		incomplete string
	}{
		"both kinds": {slices.Concat(validates, mutates), "",
			[]string{"and may refuse or undo it: ValidatingAdmissionPolicy keeps, MutatingAdmissionPolicy restores"}, ""},
		"one kind": {validates, "", []string{"and may refuse or undo it: ValidatingAdmissionPolicy keeps",
			"the API server has no kind MutatingAdmissionPolicy"}, ""},
		"forbidden": {slices.Concat(validates, mutates), "validatingadmissionpolicies", []string{"and may refuse or undo it: MutatingAdmissionPolicy restores"},
			"no right to list validatingadmissionpolicies; grant"},
		"no kind": {nil, "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := withPolicies()
			reader := clustertest.NewReader(t, clustertest.Discovery{Served: servedPolicies(tc.served...), Next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tc.forbidden != "" && strings.HasSuffix(r.URL.Path, "/"+tc.forbidden) {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				objects.ServeHTTP(w, r)
			})}.ServeHTTP)
			volume := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": "v", "uid": "u", "finalizers": []any{"f"}}}}
			waits := []blocker.Blocker{{Object: cluster.ObjectOf(volume), Finalizer: "f", Reason: blocker.ControllerActs}}
			found := NameDeniers(t.Context(), readsOnly{reader: reader}, volume, waits)[0]
			var got []string
			for _, fact := range found.Evidence {
				got = append(got, fact.Text)
			}
			if len(got) != len(tc.want) || !strings.Contains(strings.Join(got, "\n"), strings.Join(tc.want, "\n")) {
				t.Errorf("the evidence is %q, want %q", got, tc.want)
			}
			if suggested := strings.Contains(found.Next, "# a policy may refuse the removal of the finalizer: a dry run tells\n"); suggested != (len(tc.want) > 0) {
				t.Errorf("the next step is %q", found.Next)
			}
			if text := strings.Join(reader.Incomplete(), "\n"); !strings.Contains(text, tc.incomplete) || (text != "") != (tc.incomplete != "") {
				t.Errorf("not read: %q, want %q", text, tc.incomplete)
			}
		})
	}
}
