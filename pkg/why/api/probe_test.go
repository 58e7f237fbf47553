package api

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/refusal"
)

func hookNamed(configuration, service, team string) hook {
	return hook{refusal.Hook{
		Name: "check.example", Service: &admissionv1.ServiceReference{Namespace: "shop", Name: service},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
				Resources: []string{"configmaps"}},
		}},
	}, blocker.Object{Name: configuration}}
}

func TestHookOfNamesakes(t *testing.T) {
	write := refusal.Write{
		Operation: admissionv1.Update, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Namespaced: true, HasNamespace: true, NamespaceLabels: labels.Set{"team": "a"},
	}
	const called = `failed calling webhook "check.example": failed to call webhook: Post "https://check.shop.svc:443/v?timeout=1s": EOF`
	for name, c := range map[string]struct {
		hooks   []hook
		message string
		want    string
	}{
		"another namespace":   {[]hook{hookNamed("other", "check", "b"), hookNamed("right", "check", "a")}, called, "right"},
		"another service":     {[]hook{hookNamed("other", "gone", "a"), hookNamed("right", "check", "a")}, called, "right"},
		"longer service name": {[]hook{hookNamed("other", "k", "a")}, called, ""},
		"no service quoted":   {[]hook{hookNamed("one", "gone", "a"), hookNamed("two", "check", "a")}, `failed calling webhook "check.example": EOF`, ""},
	} {
		got := ""
		if found := hookOf(c.hooks, write, "check.example", c.message); found != nil {
			got = found.configuration.Name
		}
		if got != c.want {
			t.Errorf("%s: hook of configuration %q, want %q", name, got, c.want)
		}
	}
}
