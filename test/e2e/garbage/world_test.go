package garbage

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
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
	classes         = kind{schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}, "PriorityClass", false}
	widgets         = kind{schema.GroupVersionResource{Group: "e2e.exeunt.io", Version: "v1", Resource: "widgets"}, "Widget", true}
	crds            = kind{schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "CustomResourceDefinition", false}
)

var definitions = definition("Widget", "widgets")

// definition returns a custom resource definition.
func definition(kind, plural string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.e2e.exeunt.io}
spec:
  group: e2e.exeunt.io
  scope: Namespaced
  names: {kind: %[1]s, plural: %[2]s, singular: %[2]s-one}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, kind, plural)
}

// world is a namespace of one test.
type world struct {
	*rig
	t         *testing.T
	ctx       context.Context
	namespace string
}

func (r *rig) world(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	w := &world{rig: r, t: t, ctx: ctx}
	w.namespace = w.newNamespace()
	return w
}

func (w *world) newNamespace() string {
	w.t.Helper()
	namespace, err := w.typed.CoreV1().Namespaces().Create(w.ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gc-"}}, metav1.CreateOptions{})
	must(w.t, err, "create namespace")
	return namespace.Name
}

// option changes an object before it is created.
type option func(*unstructured.Unstructured)

func ownedBy(owners ...metav1.OwnerReference) option {
	return func(o *unstructured.Unstructured) { o.SetOwnerReferences(append(o.GetOwnerReferences(), owners...)) }
}

func finalizers(names ...string) option {
	return func(o *unstructured.Unstructured) { o.SetFinalizers(names) }
}

func inNamespace(namespace string) option {
	return func(o *unstructured.Unstructured) { o.SetNamespace(namespace) }
}

// reference returns a reference to the owner that blocks its deletion.
func reference(owner *unstructured.Unstructured) metav1.OwnerReference {
	blocks := true
	return metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), BlockOwnerDeletion: &blocks}
}

// unblocking returns the reference without blockOwnerDeletion.
func unblocking(r metav1.OwnerReference) metav1.OwnerReference {
	r.BlockOwnerDeletion = nil
	return r
}

func (w *world) absentOwner() option {
	return ownedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "absent", UID: "00000000-0000-4000-8000-000000000000"})
}

func (w *world) in(k kind) dynamic.ResourceInterface {
	if k.namespaced {
		return w.client.Resource(k.GroupVersionResource).Namespace(w.namespace)
	}
	return w.client.Resource(k.GroupVersionResource)
}

// name returns the name of an object; cluster-scoped ones are prefixed by the namespace.
func (w *world) name(k kind, name string) string {
	if k.namespaced {
		return name
	}
	return w.namespace + "-" + name
}

func (w *world) create(k kind, name string, options ...option) *unstructured.Unstructured {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(k.apiVersion())
	o.SetKind(k.name)
	o.SetName(w.name(k, name))
	client := w.in(k)
	for _, change := range options {
		change(o)
	}
	if namespace := o.GetNamespace(); namespace != "" {
		client = w.client.Resource(k.GroupVersionResource).Namespace(namespace)
	}
	created, err := client.Create(w.ctx, o, metav1.CreateOptions{})
	must(w.t, err, "create "+k.name+" "+name)
	return created
}

// own adds references to an object that exists.
func (w *world) own(k kind, name string, owners ...metav1.OwnerReference) {
	w.t.Helper()
	o := w.get(k, name)
	o.SetOwnerReferences(owners)
	_, err := w.in(k).Update(w.ctx, o, metav1.UpdateOptions{})
	must(w.t, err, "set owners of "+name)
}

func (w *world) delete(k kind, name string, policy metav1.DeletionPropagation) {
	w.t.Helper()
	must(w.t, w.in(k).Delete(w.ctx, w.name(k, name), metav1.DeleteOptions{PropagationPolicy: &policy}), "delete "+name)
}

// get returns the object, nil if it does not exist.
func (w *world) get(k kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	o, err := w.in(k).Get(w.ctx, w.name(k, name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(w.t, err, "get "+name)
	return o
}

func (w *world) setFinalizers(k kind, name string, names ...string) {
	w.t.Helper()
	body := `{"metadata":{"finalizers":null}}`
	if len(names) > 0 {
		body = fmt.Sprintf(`{"metadata":{"finalizers":[%q]}}`, names[0])
	}
	_, err := w.in(k).Patch(w.ctx, w.name(k, name), types.MergePatchType, []byte(body), metav1.PatchOptions{})
	must(w.t, err, "patch finalizers of "+name)
}

func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.ctx, 10*time.Millisecond, 40*time.Second, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		w.t.Fatalf("waiting until %s: %v; the log is %s", what, err, w.process.LogFile())
	}
}

func (w *world) awaitGone(k kind, name string) {
	w.t.Helper()
	w.await(name+" is gone", func() bool { return w.get(k, name) == nil })
}

func (w *world) awaitDeleted(k kind, name string) {
	w.t.Helper()
	w.await(name+" is being deleted", func() bool {
		o := w.get(k, name)
		return o != nil && o.GetDeletionTimestamp() != nil
	})
}

func (w *world) awaitOwners(k kind, name string, owners ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s has the owners %v", name, owners), func() bool {
		o := w.get(k, name)
		if o == nil {
			w.t.Fatalf("%s is gone", name)
		}
		var names []string
		for _, r := range o.GetOwnerReferences() {
			names = append(names, r.Name)
		}
		return slices.Equal(names, owners)
	})
}

// expectKept fails if the object is gone or being deleted after garbage that came later was
// collected.
func (w *world) expectKept(k kind, name string) {
	w.t.Helper()
	fence := "fence-" + name
	w.create(secrets, fence, w.absentOwner())
	w.awaitGone(secrets, fence)
	if o := w.get(k, name); o == nil || o.GetDeletionTimestamp() != nil {
		w.t.Errorf("%s was deleted", name)
	}
}

func (w *world) expectGone(k kind, name string) {
	w.t.Helper()
	if w.get(k, name) != nil {
		w.t.Errorf("%s still exists", name)
	}
}

func uid(i int) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
}

func contains(list []string, text string) bool { return slices.Contains(list, text) }
