package nodeterminator

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
)

// elsewhere are resources whose rights are looked at where they are used, or that no termination needs.
var elsewhere = []string{"nodeclaims", "nodeclaims/status", "customresourcedefinitions", "events"}

func TestRightsAreThoseOfClusterRole(t *testing.T) {
	text, err := fs.ReadFile(deploy.NodeTerminator, "node-terminator/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var granted, asked []string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				if role.Kind == "ClusterRole" && !slices.Contains(elsewhere, rule.Resources[0]) {
					resource := schema.GroupResource{Group: rule.APIGroups[0], Resource: rule.Resources[0]}
					granted = append(granted, verb+" "+resource.String())
				}
			}
		}
	}
	for _, r := range rights("exeunt-system") {
		if r.namespace == "" {
			asked = append(asked, r.verb+" "+r.resource.String())
		}
	}
	slices.Sort(granted)
	slices.Sort(asked)
	if !slices.Equal(granted, asked) {
		t.Errorf("granted are %q, asked for %q", granted, asked)
	}
}
