package situations

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// Finalizers of operators that the table has.
const (
	pulumiFinalizer = "finalizer.stack.pulumi.com"
	tofuFinalizer   = "finalizers.tf.contrib.fluxcd.io"
)

// createPulumi runs the operator of Pulumi stacks, and returns their resource.
func (r *place) createPulumi() schema.GroupVersionResource {
	r.T.Helper()
	r.createDeployment(r.Namespace, "pulumi", "registry.example/pulumi-kubernetes-operator:v2", 1, 1)
	return r.createCRD("pulumi.com", "Stack")
}

// createStoppedTofu scales the operator of Terraform objects to zero, and returns their resource.
func (r *place) createStoppedTofu() schema.GroupVersionResource {
	r.T.Helper()
	r.createDeployment(r.Namespace, "tofu", "registry.example/tofu-controller:v0.16", 0, 0)
	return r.createCRD("infra.contrib.fluxcd.io", "Terraform")
}

// createOwned creates a custom resource that owners own with blockOwnerDeletion.
func (r *place) createOwned(resource schema.GroupVersionResource, kind, name string, finalizers []string,
	owners ...*unstructured.Unstructured) *unstructured.Unstructured {
	r.T.Helper()
	object := r.createCustom(resource, kind, name, finalizers...)
	r.own(resource, name, owners...)
	return object
}

// own makes the owners own the object.
func (r *place) own(resource schema.GroupVersionResource, name string, owners ...*unstructured.Unstructured) {
	r.T.Helper()
	object := r.live(resource, name)
	var refs []metav1.OwnerReference
	for _, owner := range owners {
		refs = append(refs, metav1.OwnerReference{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
			BlockOwnerDeletion: new(true),
		})
	}
	object.SetOwnerReferences(refs)
	_, err := r.dynamic().Resource(resource).Namespace(r.Namespace).Update(r.Ctx, object, metav1.UpdateOptions{})
	r.Must(err, "set owners of "+name)
}

// deleteBy deletes the object with the propagation policy.
func (r *place) deleteBy(resource schema.GroupVersionResource, name string,
	policy metav1.DeletionPropagation) []string {
	r.T.Helper()
	err := r.dynamic().Resource(resource).Namespace(r.Namespace).
		Delete(r.Ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy})
	r.Must(err, "delete "+name)
	return []string{resource.GroupResource().String() + "/" + name}
}

// removeReference removes the first owner reference, as the next step says.
func (r *place) removeReference(resource schema.GroupVersionResource, name string) {
	r.T.Helper()
	_, err := r.dynamic().Resource(resource).Namespace(r.Namespace).Patch(r.Ctx, name, types.JSONPatchType,
		[]byte(`[{"op":"remove","path":"/metadata/ownerReferences/0"}]`), metav1.PatchOptions{})
	r.Must(err, "remove owner reference of "+name)
}

// leadManager makes kube-controller-manager hold its Lease.
func (r *place) leadManager() {
	r.T.Helper()
	r.createLease(metav1.NamespaceSystem, "kube-controller-manager", "node-1_1234", time.Second, 15*time.Second)
}

// createStoppedManager has kube-controller-manager with its loops switched off, and without leader.
func (r *place) createStoppedManager() {
	r.T.Helper()
	r.createDeployment(metav1.NamespaceSystem, "kube-controller-manager",
		"registry.example/kube-controller-manager:v1.36.3", 0, 0)
	r.createLease(metav1.NamespaceSystem, "kube-controller-manager", "node-1_1234", time.Hour, 15*time.Second)
}

const foreground = metav1.DeletePropagationForeground

var (
	widgets = schema.GroupVersionResource{Group: "owners.situations.example", Version: "v1", Resource: "widgets"}
	stacks  = schema.GroupVersionResource{Group: "pulumi.com", Version: "v1", Resource: "stacks"}
	plans   = schema.GroupVersionResource{Group: "infra.contrib.fluxcd.io", Version: "v1", Resource: "terraforms"}
)

// createOwner defines widgets and creates one.
func (r *place) createOwner(name string) *unstructured.Unstructured {
	r.T.Helper()
	return r.createCustom(r.createCRD(widgets.Group, "Widget"), "Widget", name)
}

// foregroundDeletions returns the situations of owners that wait for dependents.
func foregroundDeletions() []situation {
	return slices.Concat(dependents(), chains(), remainingDependents(), collectors(), failedApplications(), []situation{
		{
			number: "55", name: "two owners that are deleted in the foreground own each other",
			build: func(r *place) []string {
				first := r.createOwner("first")
				second := r.createOwned(widgets, "Widget", "second", []string{"unknown.situations.example/f"}, first)
				r.own(widgets, "first", second)
				r.deleteBy(widgets, "second", foreground)
				return r.deleteBy(widgets, "first", foreground)
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.OwnerCycle, blocker.UnknownFinalizer},
			next: "/metadata/ownerReferences/0",
			step: func(r *place) {
				r.removeReference(widgets, "second")
				r.removeFinalizers(widgets, "first") // as the garbage collector does now
				r.removeFinalizers(widgets, "second")
			},
		},
		{
			number: "56", name: "a kind that may have dependents cannot be listed", alone: true,
			build: func(r *place) []string {
				r.createOwner("owner")
				r.createUnconverted(r.Namespace)
				return r.deleteBy(widgets, "owner", foreground)
			},
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.DependentsUnseen}, next: "api-resources",
			step: func(r *place) { r.removeFinalizers(widgets, "owner") },
		},
	})
}

// collectors returns the situations of the garbage collector.
func collectors() []situation {
	return []situation{
		{
			number: "57", name: "the garbage collector orphans the dependents", alone: true,
			build: func(r *place) []string {
				r.leadManager()
				r.createOwner("owner")
				return r.deleteBy(widgets, "owner", metav1.DeletePropagationOrphan)
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.OrphanPending},
			step: func(r *place) { r.removeFinalizers(widgets, "owner") },
		},
		{
			number: "58", name: "the garbage collector is switched off", alone: true,
			build: func(r *place) []string {
				r.createStoppedManager()
				r.createOwned(widgets, "Widget", "dependent", nil, r.createOwner("owner"))
				return r.deleteBy(widgets, "owner", foreground)
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone},
			step: func(r *place) { r.removeFinalizers(widgets, "owner") },
		},
	}
}

// dependents returns the situations of owners whose dependents are being deleted, too.
func dependents() []situation {
	return []situation{
		{
			number: "52", name: "a GitOps application waits for its own child",
			build: func(r *place) []string {
				r.createCustom(r.createPulumi(), "Stack", "child", pulumiFinalizer)
				r.deleteCustom(stacks, "child")
				return r.deleteApplication("child")
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs},
			step: func(r *place) {
				r.removeFinalizers(stacks, "child")
				r.removeFinalizers(applications, "application")
			},
		},
		{
			number: "53", name: "a dependent waits for its operator, which lives",
			build: func(r *place) []string {
				owner := r.createOwner("owner")
				r.createOwned(r.createPulumi(), "Stack", "dependent", []string{pulumiFinalizer}, owner)
				r.deleteCustom(stacks, "dependent")
				return r.deleteBy(widgets, "owner", foreground)
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs},
			step: func(r *place) {
				r.removeFinalizers(stacks, "dependent")
				r.removeFinalizers(widgets, "owner")
			},
		},
	}
}

// chains returns the situations of dependents that wait themselves.
func chains() []situation {
	return []situation{
		{
			number: "54", name: "the last of a chain of three waits for an operator that is gone",
			build: func(r *place) []string {
				owner := r.createOwner("owner")
				middle := r.createOwned(widgets, "Widget", "middle", nil, owner)
				r.createOwned(r.createStoppedTofu(), "Terraform", "last", []string{tofuFinalizer}, middle)
				r.deleteCustom(plans, "last")
				r.deleteBy(widgets, "middle", foreground)
				return r.deleteBy(widgets, "owner", foreground)
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, next: "tofu",
			step: func(r *place) {
				r.removeFinalizers(plans, "last")
				r.removeFinalizers(widgets, "middle")
				r.removeFinalizers(widgets, "owner")
			},
		},
	}
}

// remainingDependents returns the situations of dependents that are not deleted yet.
func remainingDependents() []situation {
	return []situation{
		{
			number: "f2", name: "a dependent has another owner of a kind that is not served", alone: true,
			build: func(r *place) []string {
				r.leadManager()
				stranger := &unstructured.Unstructured{}
				stranger.SetAPIVersion("gone.situations.example/v1")
				stranger.SetKind("Forgotten")
				stranger.SetName("forgotten")
				stranger.SetUID("f")
				r.createOwned(widgets, "Widget", "dependent", nil, r.createOwner("owner"), stranger)
				return r.deleteBy(widgets, "owner", foreground)
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.OwnerUnresolvable}, next: "remove the owner reference",
			evidence: []string{"no version of this kind is served"},
			step: func(r *place) {
				r.deleteCustom(widgets, "dependent")
				r.removeFinalizers(widgets, "owner")
			},
		},
		{
			number: "f1", name: "a dependent is not deleted yet, and the collector lives", alone: true,
			build: func(r *place) []string {
				r.leadManager()
				r.createOwned(widgets, "Widget", "dependent", nil, r.createOwner("owner"))
				return r.deleteBy(widgets, "owner", foreground)
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DependentsRemain},
			step: func(r *place) {
				r.deleteCustom(widgets, "dependent")
				r.removeFinalizers(widgets, "owner")
			},
		},
	}
}

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1", Resource: "applications"}

// deleteApplication creates an Argo CD application that has the stack, and deletes both.
func (r *place) deleteApplication(stack string) []string {
	r.T.Helper()
	application := r.createCustom(r.createCRD(applications.Group, "Application"), "Application", "application",
		"resources-finalizer.argocd.argoproj.io")
	application.Object["status"] = map[string]any{"resources": []any{map[string]any{
		"group": stacks.Group, "version": stacks.Version, "kind": "Stack", "namespace": r.Namespace, "name": stack,
	}}}
	_, err := r.dynamic().Resource(applications).Namespace(r.Namespace).
		UpdateStatus(r.Ctx, application, metav1.UpdateOptions{})
	r.Must(err, "write status of application")
	return r.deleteCustom(applications, "application")
}

// createUnconverted creates an object in the namespace that the API server cannot convert
// from its old version, and returns its resource in the new version.
func (r *place) createUnconverted(namespace string) schema.GroupVersionResource {
	r.T.Helper()
	resource := r.createCRD("conversion.situations.example", "Gadget")
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(resource.GroupVersion().String())
	object.SetKind("Gadget")
	object.SetName("gadget")
	object.SetFinalizers([]string{"unknown.situations.example/f"})
	_, err := r.dynamic().Resource(resource).Namespace(namespace).Create(r.Ctx, object, metav1.CreateOptions{})
	r.Must(err, "create Gadget")
	anything := map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
		"x-kubernetes-preserve-unknown-fields": true}}
	definition, err := r.dynamic().Resource(definitions).Get(r.Ctx, resource.GroupResource().String(), metav1.GetOptions{})
	r.Must(err, "get definition")
	r.Must(unstructured.SetNestedSlice(definition.Object, []any{
		map[string]any{"name": "v1", "served": true, "storage": false, "schema": anything},
		map[string]any{"name": "v2", "served": true, "storage": true, "schema": anything},
	}, "spec", "versions"), "set versions")
	r.Must(unstructured.SetNestedMap(definition.Object, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"service": map[string]any{"namespace": namespace, "name": "converter"}},
	}}, "spec", "conversion"), "set conversion")
	_, err = r.dynamic().Resource(definitions).Update(r.Ctx, definition, metav1.UpdateOptions{})
	r.Must(err, "update definition")
	_, err = r.Client.CoreV1().Services(namespace).Create(r.Ctx, &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "converter"},
		Spec:       v1.ServiceSpec{Selector: map[string]string{"app": "converter"}, Ports: []v1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})
	r.Must(err, "create service")
	resource.Version = "v2"
	r.awaitConversion(resource, namespace)
	return resource
}

// awaitConversion waits until the conversion of the gadgets fails.
func (r *place) awaitConversion(resource schema.GroupVersionResource, namespace string) {
	r.T.Helper()
	r.Until("the conversion fails", func() bool {
		_, err := r.dynamic().Resource(resource).Namespace(namespace).List(r.Ctx, metav1.ListOptions{Limit: 500})
		return err != nil && strings.Contains(err.Error(), "conversion webhook for")
	})
}
