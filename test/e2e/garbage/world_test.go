package garbage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// world is a namespace of one test.
type world struct {
	*rig
	t         *testing.T
	ctx       context.Context
	namespace string
	fences    int
	// unseen are the kinds of objects that were created since the last fence.
	unseen map[kind]bool
	// late is the custom kind of the scenario.
	late kind
}

func (r *rig) world(t *testing.T) *world {
	t.Helper()
	w := r.worldIn(t, "")
	w.namespace = w.newNamespace()
	return w
}

// worldIn returns the world of a namespace that exists.
func (r *rig) worldIn(t *testing.T, namespace string) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return &world{rig: r, t: t, ctx: ctx, namespace: namespace, unseen: map[kind]bool{}}
}

func (w *world) newNamespace() string {
	w.t.Helper()
	namespace, err := w.typed.CoreV1().Namespaces().Create(w.ctx,
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gc-"}}, metav1.CreateOptions{})
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
	return metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(),
		UID: owner.GetUID(), BlockOwnerDeletion: pointer(true)}
}

// unblocking returns the reference without blockOwnerDeletion.
func unblocking(r metav1.OwnerReference) metav1.OwnerReference {
	r.BlockOwnerDeletion = nil
	return r
}

// notBlocking returns the reference with blockOwnerDeletion false.
func notBlocking(r metav1.OwnerReference) metav1.OwnerReference {
	r.BlockOwnerDeletion = pointer(false)
	return r
}

func pointer[T any](value T) *T { return &value }

func (w *world) absentOwner() option {
	return ownedBy(metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "absent",
		UID: "00000000-0000-4000-8000-000000000000"})
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
	w.unseen[k] = true
	return created
}

// own replaces the references of an object that exists.
func (w *world) own(k kind, name string, owners ...metav1.OwnerReference) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": owners}})
	must(w.t, err, "encode owners")
	_, err = w.in(k).Patch(w.ctx, w.name(k, name), types.MergePatchType, body, metav1.PatchOptions{})
	must(w.t, err, "set owners of "+name)
}

func (w *world) delete(k kind, name string, policy metav1.DeletionPropagation) {
	w.t.Helper()
	w.deleteWith(k, name, metav1.DeleteOptions{PropagationPolicy: &policy})
}

func (w *world) deleteWith(k kind, name string, options metav1.DeleteOptions) {
	w.t.Helper()
	if w.side == stock {
		w.settleUnseen()
	}
	must(w.t, w.in(k).Delete(w.ctx, w.name(k, name), options), "delete "+name)
}

// settleUnseen waits until upstream's collector has seen the dependents of an owner: it neither waits
// for others nor orphans them.
func (w *world) settleUnseen() {
	w.t.Helper()
	select {
	case <-w.process.Done():
		return
	default:
	}
	for _, k := range []kind{serviceAccounts, secrets, widgets, configMaps} {
		if w.unseen[k] {
			w.settleKind(k)
		}
	}
	clear(w.unseen)
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
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": names}})
	must(w.t, err, "encode finalizers")
	_, err = w.in(k).Patch(w.ctx, w.name(k, name), types.MergePatchType, body, metav1.PatchOptions{})
	must(w.t, err, "patch finalizers of "+name)
}

// finalize ends the deletion of a namespace, as the namespace controller does.
func (w *world) finalize(name string) {
	w.t.Helper()
	namespace, err := w.typed.CoreV1().Namespaces().Get(w.ctx, w.name(namespaces, name), metav1.GetOptions{})
	must(w.t, err, "get namespace")
	namespace.Spec.Finalizers = nil
	_, err = w.typed.CoreV1().Namespaces().Finalize(w.ctx, namespace, metav1.UpdateOptions{})
	must(w.t, err, "finalize namespace")
}

func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.ctx, 20*time.Millisecond, 100*time.Second, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		w.t.Fatalf("waiting until %s: %v; the log is %s", what, err, w.process.LogFile())
	}
}

// kept returns what keeps an object, for the message of a failed test.
func kept(o *unstructured.Unstructured) string {
	if o == nil {
		return "gone"
	}
	return fmt.Sprintf("version %s, deleted %v, finalizers %v, owners %v", o.GetResourceVersion(),
		o.GetDeletionTimestamp(), o.GetFinalizers(), o.GetOwnerReferences())
}

func uid(i int) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))
}

func contains(list []string, text string) bool { return slices.Contains(list, text) }
