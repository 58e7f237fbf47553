package manifests

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

// A release is installed, upgraded and uninstalled while the cluster is protected. No step changes Alive.
func TestReleaseSignalsNoTeardown(t *testing.T) {
	server := startServer(t)
	release := func(given values) []*unstructured.Unstructured {
		objects := templated(t, values{"pvController": values{"enabled": false}, "provisioner": values{"enabled": false}, "alive": given})
		for _, object := range objects {
			server.prepareNamespace(t, object)
			if err := server.apply(t.Context(), object); err != nil {
				t.Fatalf("apply %s: %v", nameOf(object), err)
			}
		}
		return objects
	}
	release(values{"enabled": true})
	object, err := alive.ToUnstructured(alive.New())
	if err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	alives := server.client.Resource(alive.Resource)
	var before *unstructured.Unstructured
	eventually(t, "Alive is created", func() bool {
		before, err = alives.Create(t.Context(), object, metav1.CreateOptions{})
		return err == nil
	})
	eventually(t, "the guards are in force", func() bool {
		return alives.Delete(t.Context(), alive.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}) != nil
	})
	expectSame := func(step string) {
		after, err := alives.Get(t.Context(), alive.Name, metav1.GetOptions{})
		if err != nil || after.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("after %s Alive is %+v, %v", step, after, err)
		}
	}
	objects := release(values{"enabled": true, "logLevel": 4})
	expectSame("an upgrade")
	for _, gone := range uninstalled(objects) {
		server.mustDelete(t, gone)
	}
	expectSame("the uninstall")
	if err := alives.Delete(t.Context(), alive.Name, metav1.DeleteOptions{}); err == nil {
		t.Error("after the uninstall a protected Alive can be deleted")
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// uninstalled are the objects that helm uninstall deletes, the last one first.
func uninstalled(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetAnnotations()["helm.sh/resource-policy"] == "keep"
	})
	slices.Reverse(objects)
	return objects
}

// mustDelete deletes an object.
func (s *server) mustDelete(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	var resource dynamic.ResourceInterface = s.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = s.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	if err := resource.Delete(t.Context(), object.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete %s: %v", nameOf(object), err)
	}
}
