package integration

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// admit applies a policy of the documents to the kind, and waits until the API server denies the request with a message
// that has the text.
func (k kind) admit(policy, text string, request func() answer) {
	k.t.Helper()
	page, err := os.ReadFile("../../../docs/graceful-deletion.md")
	if err != nil {
		k.t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		_, name, _ := strings.Cut(block, "\nmetadata: {name: ")
		name, _, _ = strings.Cut(name, "}")
		if strings.Contains(block, "PolicyBinding\n") {
			name = "binding"
		}
		blocks[name] = block
	}
	const boundPolicy = "grace-at-most-an-hour" // of the binding in the documents
	for path, block := range map[string]string{"validatingadmissionpolicies": blocks[policy],
		"validatingadmissionpolicybindings": strings.ReplaceAll(blocks["binding"], boundPolicy, policy)} {
		body := strings.ReplaceAll(strings.ReplaceAll(block, "vm.example.com", k.group), "{name: "+policy, "{name: "+k.group)
		body = strings.ReplaceAll(body, "policyName: "+policy, "policyName: "+k.group)
		got := k.s.do(k.t, http.MethodPost, "/apis/admissionregistration.k8s.io/v1/"+path, "application/yaml", body)
		if got.code != http.StatusCreated {
			k.t.Fatalf("%s: %d %s\n%s", policy, got.code, got.text, body)
		}
	}
	wait(k.t, func() error {
		if got := request(); got.code != http.StatusUnprocessableEntity || !strings.Contains(got.message(), text) {
			return fmt.Errorf("the policy %s does not act: %d %s", policy, got.code, got.text)
		}
		return nil
	})
}

var dryRun = options{"dryRun": []string{"All"}}

// #18: a request that admission denies is neither written nor counted.
func TestPolicyLimitsGracePeriods(t *testing.T) {
	k := newKind(t, ours(t), "policy.example.com")
	k.create("a", finalizer)
	_, revision := k.stored("a")
	k.admit("grace-at-most-an-hour", "at most an hour", func() answer { return k.delete("a", 7200, dryRun) })
	if got := k.delete("a", 7200, nil); got.code != http.StatusUnprocessableEntity || len(got.warnings) > 0 {
		t.Errorf("%d %q %s", got.code, got.warnings, got.text)
	}
	k.unchanged("a", revision)
	if got := k.metrics(); got != "" {
		t.Errorf("counted: %s", got)
	}
	k.graceful("a", 3600)
	if got := k.delete("a", 7200, nil); got.code != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", got.code, got.text)
	}
	if got, want := k.metrics(), "granted 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestPolicyAllowsForceToAdministratorsOnly(t *testing.T) {
	k := newKind(t, ours(t), "force.example.com")
	user := k.at(k.s.as(t, "user"))
	allow := strings.ReplaceAll(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"GROUP"},
		"rules":[{"apiGroups":["GROUP"],"resources":["*"],"verbs":["get","delete","patch"]}]}`, "GROUP", k.group)
	bind := strings.ReplaceAll(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"GROUP"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"GROUP"},"subjects":[{"kind":"User","name":"user"}]}`,
		"GROUP", k.group)
	for path, body := range map[string]string{"clusterroles": allow, "clusterrolebindings": bind} {
		if got := k.s.do(t, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/"+path, asJSON, body); got.code != http.StatusCreated {
			t.Fatalf("%d %s", got.code, got.text)
		}
	}
	k.create("a", finalizer)
	k.admit("force-for-administrators", "only an administrator", func() answer { return user.delete("a", 0, dryRun) })
	for _, step := range []struct {
		k     kind
		grace any
		code  int
	}{
		{user, 300, http.StatusOK}, {user, "", http.StatusOK}, {user, 0, http.StatusUnprocessableEntity},
		{user, 60, http.StatusOK}, {k, 0, http.StatusOK},
	} {
		if got := step.k.delete("a", step.grace, nil); got.code != step.code {
			t.Errorf("grace period %v: %d %s, want %d", step.grace, got.code, got.text, step.code)
		}
	}
	hosts := k.clusterScoped("hosts", "Host")
	for _, step := range []struct {
		k     kind
		grace int
		code  int
	}{{user, 0, http.StatusUnprocessableEntity}, {user, 60, http.StatusOK}, {k, 0, http.StatusOK}} {
		if got := step.k.s.do(t, http.MethodDelete, hosts+"/a", asJSON, options{"gracePeriodSeconds": step.grace}); got.code !=
			step.code {
			t.Errorf("cluster-scoped, grace period %d: %d %s, want %d", step.grace, got.code, got.text, step.code)
		}
	}
}

// clusterScoped creates a cluster-scoped kind of the group, and an object "a" with a finalizer. It returns the path.
func (k kind) clusterScoped(plural, name string) string {
	k.t.Helper()
	crd := strings.NewReplacer("Namespaced", "Cluster", "machines", plural, "machine", strings.ToLower(name), "Machine", name).
		Replace(crdOf(k.group, `"versions":[`+plainVersion+`]`))
	if got := k.s.do(k.t, http.MethodPost, definitions, asJSON, crd); got.code != http.StatusCreated {
		k.t.Fatalf("create the CRD: %d %s", got.code, got.text)
	}
	path := "/apis/" + k.group + "/v1/" + plural
	object := map[string]any{"apiVersion": k.group + "/v1", "kind": name,
		"metadata": map[string]any{"name": "a", "finalizers": []string{finalizer}}}
	wait(k.t, func() error {
		if got := k.s.do(k.t, http.MethodPost, path, asJSON, object); got.code != http.StatusCreated {
			return fmt.Errorf("create a cluster-scoped object: %d %s", got.code, got.text)
		}
		return nil
	})
	return path
}

func TestPolicyRefusesGraceForOneKind(t *testing.T) {
	k := newKind(t, ours(t), "nograce.example.com")
	k.create("a", finalizer)
	k.admit("no-grace", "without a grace period", func() answer { return k.delete("a", 1, dryRun) })
	for _, grace := range []any{"", 0} {
		if got := k.delete("a", grace, nil); got.code != http.StatusOK {
			t.Errorf("grace period %v: %d %s", grace, got.code, got.text)
		}
	}
}

// A policy on annotations is checked in the request that removes a finalizer, too.
func TestPolicyOnAnnotationsAllowsDeadline(t *testing.T) {
	k := newKind(t, ours(t), "notes.example.com")
	k.create("a", finalizer, "example.com/second")
	const unknown = `{"metadata":{"annotations":{"example.com/other":"x"}}}`
	k.admit("known-annotations", "unknown annotation", func() answer {
		return k.s.do(t, http.MethodPatch, k.path("a")+"?dryRun=All", asMerge, unknown)
	})
	k.graceful("a", 300)
	if got := k.patch("a", unknown); got.code != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", got.code, got.text)
	}
	for _, left := range []string{`["example.com/second"]`, `null`} {
		if got := k.patch("a", `{"metadata":{"finalizers":`+left+`}}`); got.code != http.StatusOK {
			t.Errorf("%d %s", got.code, got.text)
		}
	}
	if got := k.get("a"); got.code != http.StatusNotFound {
		t.Errorf("the object is there: %s", got.text)
	}
}
