package garbage

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// kind is a kind of the tests.
type kind struct {
	schema.GroupVersionResource
	name       string
	namespaced bool
}

func (k kind) apiVersion() string { return k.GroupVersion().String() }

var (
	configMaps      = kind{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", true}
	secrets         = kind{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "Secret", true}
	serviceAccounts = kind{schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, "ServiceAccount", true}
	pods            = kind{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod", true}
	namespaces      = kind{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "Namespace", false}
	deployments     = kind{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		"Deployment", true}
	replicaSets = kind{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"},
		"ReplicaSet", true}
	leases = kind{schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
		"Lease", true}
	classes = kind{schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1",
		Resource: "priorityclasses"}, "PriorityClass", false}
	crds = kind{schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}, "CustomResourceDefinition", false}
	widgets = kind{schema.GroupVersionResource{Group: "e2e.exeunt.io", Version: "v1", Resource: "widgets"},
		"Widget", true}
	otherWidgets = kind{schema.GroupVersionResource{Group: "other.exeunt.io", Version: "v1", Resource: "widgets"},
		"Widget", true}
	gizmos = kind{schema.GroupVersionResource{Group: "e2e.exeunt.io", Version: "v1", Resource: "gizmos"}, "Gizmo",
		true}
	fleets = kind{schema.GroupVersionResource{Group: "e2e.exeunt.io", Version: "v1", Resource: "fleets"}, "Fleet",
		false}
)

// definitions returns the definitions of the custom kinds.
func definitions() string {
	return definition("Widget", "widgets") + definitionOf(otherWidgets) + definitionOf(fleets) +
		definitionOf(gizmos, "v1beta1")
}

// definition returns the definition of a namespaced kind.
func definition(name, plural string) string { return definitionOf(customKind(name, plural)) }

func customKind(name, plural string) kind {
	return kind{schema.GroupVersionResource{Group: "e2e.exeunt.io", Version: "v1", Resource: plural}, name, true}
}

// definitionOf returns the definition of a kind, which is served in other versions too.
func definitionOf(k kind, versions ...string) string {
	scope := "Cluster"
	if k.namespaced {
		scope = "Namespaced"
	}
	text := fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[3]s}
spec:
  group: %[3]s
  scope: %[4]s
  names: {kind: %[1]s, plural: %[2]s, singular: %[2]s-one}
  versions:
`, k.name, k.Resource, k.Group, scope)
	for _, version := range append([]string{k.Version}, versions...) {
		text += fmt.Sprintf("  - {name: %s, served: true, storage: %v, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", version, version == k.Version)
	}
	return text
}

// lateCount is the number of custom kinds behind a proxy, whose watches scenarios hold back.
const lateCount = 20

func lateKind(i int) kind {
	return customKind(fmt.Sprint("Late", i), fmt.Sprint("late", i))
}

func lateDefinitions() string {
	var text strings.Builder
	for i := range lateCount {
		text.WriteString(definitionOf(lateKind(i)))
	}
	return text.String()
}

// lateKind returns a custom kind of this scenario only, whose watch is held back.
func (w *world) lateKind() kind {
	w.t.Helper()
	w.lateKindLater()
	w.gate.hold(w.late.Resource)
	return w.late
}

// lateKindLater returns a custom kind of this scenario only.
func (w *world) lateKindLater() kind {
	w.t.Helper()
	i := int(w.lateKinds.Add(1)) - 1
	if i >= lateCount {
		w.t.Fatal("too few late kinds")
	}
	w.late = lateKind(i)
	return w.late
}

// define defines a kind, and waits until its objects can be created.
func (w *world) define(name, plural string) kind {
	w.t.Helper()
	defined := customKind(name, plural)
	must(w.t, sandbox.ApplyYAML(w.ctx, w.plane.RESTConfig(), []byte(definitionOf(defined))), "define "+name)
	w.await("the kind is served", func() bool {
		_, err := w.in(defined).List(w.ctx, metav1.ListOptions{})
		return err == nil
	})
	return defined
}

// undefine deletes the definition of a kind.
func (w *world) undefine(k kind) {
	w.t.Helper()
	must(w.t, w.client.Resource(crds.GroupVersionResource).Delete(w.ctx, k.GroupResource().String(),
		metav1.DeleteOptions{}), "delete definition")
}

// awaitUndefined waits until the kind is served no longer.
func (w *world) awaitUndefined(k kind) {
	w.t.Helper()
	w.await("the kind is gone", func() bool {
		_, err := w.in(k).List(w.ctx, metav1.ListOptions{})
		return err != nil
	})
}

// dropped reports whether upstream's controller has logged that it stops watching the kind.
func (w *world) dropped(k kind) bool {
	log, err := os.ReadFile(w.process.LogFile())
	return err == nil && regexp.MustCompile(`removed: \[[^\]]*Resource=`+k.Resource+`[ \]]`).Match(log)
}

// path returns the path of an object.
func (w *world) path(k kind, name string) string {
	prefix := "/apis/" + k.apiVersion()
	if k.Group == "" {
		prefix = "/api/v1"
	}
	if k.namespaced {
		prefix += "/namespaces/" + w.namespace
	}
	return prefix + "/" + k.Resource + "/" + w.name(k, name)
}

// withTemplate sets the specification of a deployment or a replica set.
func withTemplate(o *unstructured.Unstructured) {
	labels := map[string]any{"app": "e2e"}
	o.Object["spec"] = map[string]any{
		"replicas": int64(0),
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": podSpec()},
	}
}

// withContainers sets the specification of a pod.
func withContainers(o *unstructured.Unstructured) { o.Object["spec"] = podSpec() }

func podSpec() map[string]any {
	return map[string]any{
		"automountServiceAccountToken":  false,
		"terminationGracePeriodSeconds": int64(0),
		"containers":                    []any{map[string]any{"name": "main", "image": "none"}},
	}
}

// frozenLabel has the operation that a policy denies to collectors, or ALL.
const frozenLabel = "e2e.exeunt.io/frozen"

// freezing is the policy.
const freezing = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: frozen.e2e.exeunt.io}
spec:
  failurePolicy: Fail
  matchConstraints:
    objectSelector: {matchExpressions: [{key: e2e.exeunt.io/frozen, operator: Exists}]}
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [UPDATE, DELETE], resources: ["*"]}]
  validations:
  - expression: "!request.userInfo.username.endsWith('garbage-collector') || !has(oldObject.metadata.labels) || !(oldObject.metadata.labels['e2e.exeunt.io/frozen'] in [string(request.operation), 'ALL'])"
    message: frozen
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: frozen.e2e.exeunt.io}
spec: {policyName: frozen.e2e.exeunt.io, validationActions: [Deny]}
`

// frozen keeps collectors from the operation on the object: DELETE, UPDATE or ALL.
func frozen(operation string) option {
	return func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{frozenLabel: operation}) }
}

func (w *world) thaw(k kind, name string) {
	w.t.Helper()
	w.patch(k, name, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, frozenLabel))
}

func (w *world) setFrozen(k kind, name, operation string) {
	w.t.Helper()
	w.patch(k, name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, frozenLabel, operation))
}

// annotate changes the object, and none of what its collection depends on.
func (w *world) annotate(k kind, name, text string) {
	w.t.Helper()
	w.patch(k, name, fmt.Sprintf(`{"metadata":{"annotations":{"e2e.exeunt.io/text":%q}}}`, text))
}

func (w *world) patch(k kind, name, body string) {
	w.t.Helper()
	_, err := w.in(k).Patch(w.ctx, w.name(k, name), types.MergePatchType, []byte(body), metav1.PatchOptions{})
	must(w.t, err, "patch "+name)
}

// awaitFreezing waits until the policy works.
func (w *world) awaitFreezing() {
	w.t.Helper()
	w.create(configMaps, "frozen", frozen("ALL"))
	config := w.plane.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "garbage-collector", Groups: []string{"system:masters"}}
	client, err := dynamic.NewForConfig(config)
	must(w.t, err, "make client")
	object := client.Resource(configMaps.GroupVersionResource).Namespace(w.namespace)
	w.await("the policy works", func() bool {
		err := object.Delete(w.ctx, "frozen", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
	})
}
