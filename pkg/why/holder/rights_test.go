package holder

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWebhooksOfOneOperator(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("argoproj.io/v1alpha1")
	object.SetKind("Application")
	rule := func(resource string, groups ...string) admissionv1.Rule {
		return admissionv1.Rule{APIGroups: groups, Resources: []string{resource}}
	}
	for name, tc := range map[string]struct {
		rules []admissionv1.Rule
		want  bool
	}{
		"no rules":                           {nil, false},
		"its resource":                       {[]admissionv1.Rule{rule("applications", "argoproj.io")}, true},
		"all resources of the group":         {[]admissionv1.Rule{rule("*", "argoproj.io")}, true},
		"another operator of the same group": {[]admissionv1.Rule{rule("eventbus", "argoproj.io")}, false},
		"a policy engine for many groups":    {[]admissionv1.Rule{rule("*", "argoproj.io", "apps")}, false},
		"a policy engine for all groups":     {[]admissionv1.Rule{rule("*", "*")}, false},
		"a further group of the operator":    {[]admissionv1.Rule{rule("*", "argoproj.io"), rule("*", "argocd.argoproj.io")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := webhook{rules: tc.rules}
			if got := w.isOwn(object, "resources-finalizer.argocd.argoproj.io", "applications"); got != tc.want {
				t.Errorf("isOwn is %v, want %v", got, tc.want)
			}
		})
	}
}
