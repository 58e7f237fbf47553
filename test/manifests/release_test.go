package manifests

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

// Helm installs, upgrades and uninstalls a release while the cluster is protected. No step changes Alive.
func TestReleaseSignalsNoTeardown(t *testing.T) {
	server := startServer(t)
	server.install(t, "alive.enabled=true")
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
	server.install(t, "alive.enabled=true", "alive.logLevel=4")
	expectSame("an upgrade")
	server.helm(t, "uninstall", "exeunt")
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
