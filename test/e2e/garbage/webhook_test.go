package garbage

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// newWebhook returns an admission webhook that answers the updates of the collector.
func newWebhook(t *testing.T, answer harness.WebhookAnswer) *harness.Webhook {
	t.Helper()
	return harness.NewWebhook(t, func(request *admissionv1.AdmissionRequest) bool {
		return strings.Contains(request.UserInfo.Username, "garbage-collector")
	}, answer)
}

// updates are the updates of ConfigMaps.
func updates() registrationv1.RuleWithOperations {
	return harness.WritesOf([]string{"configmaps"}, registrationv1.Update)
}

// hasMiddle creates an object with a live and an absent owner, and a dependent of the object.
func (w *world) hasMiddle() {
	w.t.Helper()
	live := w.create(configMaps, "live")
	middle := w.create(configMaps, "middle", ownedBy(reference(live)), w.absentOwner())
	w.create(secrets, "dependent", ownedBy(reference(middle)))
}

// The webhook looks for an object elsewhere, does not find it, and hands the error on, as controller-runtime does.
func TestDependentOfObjectThatWebhookDeniesStays(t *testing.T) {
	t.Parallel()
	for _, which := range []side{ours, stock} {
		t.Run(string(which), func(t *testing.T) {
			w := start(t, which, false).world(t)
			hook := newWebhook(t, harness.DenyWithNotFound)
			_, err := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().
				Create(w.ctx, hook.Validating(w.namespace, updates()), metav1.CreateOptions{})
			must(t, err, "create webhook configuration")
			w.awaitWebhook(func(_ *unstructured.Unstructured, err error) bool { return apierrors.IsNotFound(err) })
			w.hasMiddle()
			w.await("the collector was denied", func() bool { return hook.Calls() > 0 })
			writes := hook.CallsIn(10 * time.Second)
			w.expectKept(configMaps, "middle")
			w.expectKept(secrets, "dependent")
			t.Logf("%s: %d more writes in ten seconds", which, writes)
			if which == ours && writes > 20 {
				t.Errorf("%d writes in ten seconds", writes)
			}
		})
	}
}

// The webhook puts the references back that the collector has removed.
func TestUndoneWriteIsRepeatedWithPauses(t *testing.T) {
	t.Parallel()
	for _, which := range []side{ours, stock} {
		t.Run(string(which), func(t *testing.T) {
			w := start(t, which, false).world(t)
			hook := newWebhook(t, harness.Undo(t, "/metadata/ownerReferences", "/metadata/labels"))
			_, err := w.typed.AdmissionregistrationV1().MutatingWebhookConfigurations().
				Create(w.ctx, hook.Mutating(w.namespace, updates()), metav1.CreateOptions{})
			must(t, err, "create webhook configuration")
			w.awaitWebhook(func(probe *unstructured.Unstructured, err error) bool {
				return err == nil && probe.GetLabels()["new"] == ""
			})
			w.hasMiddle()
			w.await("a write of the collector was undone", func() bool { return hook.Calls() > 0 })
			writes := hook.CallsIn(10 * time.Second)
			w.expectKept(secrets, "dependent")
			t.Logf("%s: %d more writes in ten seconds", which, writes)
			if which == stock { // it removes the reference at the next event of the object
				return
			}
			if writes > 20 {
				t.Errorf("%d writes in ten seconds", writes)
			}
			hook.SwitchOff()
			w.awaitOwners(configMaps, "middle", "live")
		})
	}
}

// awaitWebhook updates the object "probe" in dry runs until the answer shows that the API server calls the webhook.
func (w *world) awaitWebhook(called func(*unstructured.Unstructured, error) bool) {
	w.t.Helper()
	w.create(configMaps, "probe")
	w.await("the webhook is called", func() bool {
		return called(w.in(configMaps).Patch(w.ctx, "probe", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"new":"yes"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}))
	})
}
