package status

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

func TestPolicyOfEveryDiscovery(t *testing.T) {
	core := []metav1.APIResource{{Name: "pods", Kind: "Pod", Verbs: []string{"list"}}}
	webhooks := []metav1.APIResource{{Name: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration", Verbs: []string{"list"}}}
	policies := append(webhooks, metav1.APIResource{Name: "mutatingadmissionpolicies", Kind: "MutatingAdmissionPolicy", Verbs: []string{"list"}})
	for name, tc := range map[string]struct {
		served     map[string][]metav1.APIResource
		state      string
		incomplete bool
	}{
		"policies are served":                       {map[string][]metav1.APIResource{"v1": core, "admissionregistration.k8s.io/v1": policies}, "absent", false},
		"no policies are served":                    {map[string][]metav1.APIResource{"v1": core, "admissionregistration.k8s.io/v1": webhooks}, unserved, false},
		"another group does not answer":             {map[string][]metav1.APIResource{"v1": core, "admissionregistration.k8s.io/v1": policies, "metrics.k8s.io/v1beta1": nil}, "absent", false},
		"another group does not answer, unserved":   {map[string][]metav1.APIResource{"v1": core, "admissionregistration.k8s.io/v1": webhooks, "metrics.k8s.io/v1beta1": nil}, unserved, false},
		"the group of the policies does not answer": {map[string][]metav1.APIResource{"v1": core, "admissionregistration.k8s.io/v1": nil}, "absent", true},
	} {
		t.Run(name, func(t *testing.T) {
			report := Read(t.Context(), Options{Reader: clustertest.NewReader(t, clustertest.Discovery{Served: tc.served, Next: clustertest.Objects{}}.ServeHTTP)})
			if report.Policy.State != tc.state || (len(report.Incomplete) > 0) != tc.incomplete {
				t.Errorf("the policy is %q, and not read was %q; want %q, %v", report.Policy.State, report.Incomplete, tc.state, tc.incomplete)
			}
		})
	}
}
