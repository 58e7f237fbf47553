package manifests

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ourUser is the user of pv-controller.
const ourUser = "system:serviceaccount:exeunt-system:pv-controller"

// upstreamUser is a user of kube-controller-manager on the page of platforms.
var upstreamUser = regexp.MustCompile("`system:(?:serviceaccount:kube-system:([a-z-]+)|kube-controller-manager)`")

// searches returns the commands of the page that search for users, and their patterns.
func searches(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	found := map[string]*regexp.Regexp{}
	for _, line := range strings.Split(guide(t, platformsPage), "\n") {
		if command, pattern, is := strings.Cut(strings.TrimSpace(line), " | grep -nE "); is &&
			strings.HasPrefix(command, "kubectl ") {
			found[command] = regexp.MustCompile(strings.Trim(pattern, "'"))
		}
	}
	if len(found) < 5 {
		t.Errorf("%d commands search for users", len(found))
	}
	return found
}

// The server creates a role and a binding for each controller with a service account.
func TestPageNamesTheUsersOfKubeControllerManager(t *testing.T) {
	bindings := kubernetes.NewForConfigOrDie(startServer(t).config).RbacV1().ClusterRoleBindings()
	users := upstreamUser.FindAllStringSubmatch(guide(t, platformsPage), -1)
	if len(users) < 4 {
		t.Fatalf("the page names the users %v", users)
	}
	for _, user := range users {
		if user[1] == "" {
			user[1] = "kube-controller-manager"
		}
		name := "system:controller:" + user[1]
		if user[1] == "kube-controller-manager" {
			name = "system:kube-controller-manager"
		}
		if _, err := bindings.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", user[0], err)
		}
		for command, pattern := range searches(t) {
			if !pattern.MatchString(user[1]) && !pattern.MatchString(strings.Trim(user[0], "`")) {
				t.Errorf("%s does not find %s", command, user[0])
			}
		}
	}
}

func TestServerAcceptsObjectsOfPlatformsPage(t *testing.T) {
	server := startServer(t)
	kinds := map[string]bool{}
	for _, object := range objectsOfPage(t) {
		kinds[object.GetKind()] = true
		warnings, err := server.dryRun(t.Context(), object)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %v", nameOf(object), err, warnings)
		}
	}
	if !kinds["ValidatingAdmissionPolicy"] {
		t.Errorf("the page has objects of the kinds %v", kinds)
	}
}

// A search must find a policy that names the loops, and nothing of the server itself.
func TestSearchFindsPolicyThatNamesTheLoops(t *testing.T) {
	server := startServer(t)
	found := func() int {
		lines := 0
		for command, pattern := range searches(t) {
			if strings.Contains(command, ".io") || strings.Contains(command, "constraint") {
				continue // kinds of engines that are not installed here
			}
			output, err := server.kubectl(t, command)
			if err != nil {
				t.Fatal(err)
			}
			lines += len(pattern.FindAllString(output, -1))
		}
		return lines
	}
	if lines := found(); lines != 0 {
		t.Errorf("%d lines are found in a new cluster", lines)
	}
	if err := server.apply(t.Context(), find(t, objectsOfPage(t), "ValidatingAdmissionPolicy",
		"app-claims-keep-their-spec")); err != nil {
		t.Fatal(err)
	}
	if lines := found(); lines == 0 {
		t.Error("the policy is not found")
	}
}

// The page's policy exempts pv-controller, and the page's command shows that.
func TestDocumentedExemptionLetsPVControllerWrite(t *testing.T) {
	server := startServer(t)
	server.grantPVController(t)
	server.createClaim(t, "storage", "name")
	policy := find(t, objectsOfPage(t), "ValidatingAdmissionPolicy", "app-claims-keep-their-spec")
	writes := kubectlLines(t, "--dry-run=server")
	server.enforce(t, forget(t, policy))
	for _, write := range writes {
		server.await(t, "the write is refused", func() bool {
			output, err := server.kubectl(t, write)
			return err != nil && strings.Contains(output, policy.GetName())
		})
	}
	server.enforce(t, policy)
	for _, write := range writes {
		server.await(t, "the write is allowed", func() bool {
			_, err := server.kubectl(t, write)
			return err == nil
		})
	}
}

// forget returns the policy without the user of pv-controller.
func forget(t *testing.T, policy *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	return objectsIn(t, "policy", bytes.ReplaceAll(encode(policy), []byte(ourUser), []byte("system:nobody")))[0]
}

// grantPVController creates the service account of pv-controller and its rights.
func (s *server) grantPVController(t *testing.T) {
	t.Helper()
	for _, object := range kustomized(t, "pv-controller") {
		if strings.Contains(object.GetAPIVersion(), "rbac") {
			s.prepareNamespace(t, object)
			if err := s.apply(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// createClaim creates a claim that waits for a volume.
func (s *server) createClaim(t *testing.T, namespace, name string) {
	t.Helper()
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		},
	}}
	s.prepareNamespace(t, claim)
	if err := s.apply(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

// enforce applies the policy, and binds it to the whole cluster.
func (s *server) enforce(t *testing.T, policy *unstructured.Unstructured) {
	t.Helper()
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": policy.GetAPIVersion(), "kind": policy.GetKind() + "Binding",
		"metadata": map[string]any{"name": policy.GetName()},
		"spec":     map[string]any{"policyName": policy.GetName(), "validationActions": []any{"Deny"}},
	}}
	for _, object := range []*unstructured.Unstructured{policy, binding} {
		if err := s.apply(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// await waits until the server, which reads policies from caches, behaves as expected.
func (s *server) await(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			return done(), nil
		})
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// The server serves service accounts outside of kube-system at a lower priority than
// kube-controller-manager.
func TestFlowSchemasRaisePriority(t *testing.T) {
	server := startServer(t)
	server.grantPVController(t)
	lists, lease := "/api/v1/persistentvolumes", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/pv-controller"
	for _, path := range []string{lists, lease} {
		server.await(t, path+" has the priority of other service accounts", func() bool {
			return server.priorityOf(t, path) == "service-accounts workload-low"
		})
	}
	for _, object := range applied(t, []string{"kubectl", "apply", "-f", "deploy/pv-controller/priority.yaml"}) {
		if err := server.apply(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{lists: "exeunt-pv-controller workload-high",
		lease: "exeunt-pv-controller-leader-election leader-election"} {
		server.await(t, path+": "+want, func() bool { return server.priorityOf(t, path) == want })
	}
}

// priorityOf returns the FlowSchema and the priority level that serve a request of
// pv-controller.
func (s *server) priorityOf(t *testing.T, path string) string {
	t.Helper()
	config := rest.CopyConfig(s.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: ourUser, Groups: []string{
		"system:serviceaccounts", "system:serviceaccounts:exeunt-system", "system:authenticated",
	}}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	schemas, err := kubernetes.NewForConfigOrDie(s.config).FlowcontrolV1().FlowSchemas().
		List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range schemas.Items {
		if string(schema.UID) == response.Header.Get("X-Kubernetes-PF-FlowSchema-UID") {
			return schema.Name + " " + schema.Spec.PriorityLevelConfiguration.Name
		}
	}
	return "unknown"
}
