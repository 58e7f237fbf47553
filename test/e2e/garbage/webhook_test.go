package garbage

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// webhook is an admission webhook on updates of ConfigMaps. It answers updates of the object "probe" and those of the
// collector; calls counts the latter.
type webhook struct {
	*httptest.Server
	calls atomic.Int32
}

func newWebhook(t *testing.T, answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *webhook {
	t.Helper()
	hook := &webhook{}
	hook.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
			return
		}
		response := &admissionv1.AdmissionResponse{Allowed: true}
		isCollector := strings.Contains(review.Request.UserInfo.Username, "garbage-collector")
		if isCollector {
			hook.calls.Add(1)
		}
		if isCollector || review.Request.Name == "probe" {
			response = answer(review.Request)
		}
		response.UID = review.Request.UID
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
	}))
	t.Cleanup(hook.Close)
	return hook
}

func (h *webhook) client() registrationv1.WebhookClientConfig {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return registrationv1.WebhookClientConfig{URL: &h.URL, CABundle: authority}
}

// updates are the updates of ConfigMaps.
func updates() []registrationv1.RuleWithOperations {
	return []registrationv1.RuleWithOperations{{
		Operations: []registrationv1.OperationType{registrationv1.Update},
		Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
	}}
}

// hasMiddle creates an object with a live and an absent owner, and a dependent of the object.
func (w *world) hasMiddle() {
	w.t.Helper()
	live := w.create(configMaps, "live")
	middle := w.create(configMaps, "middle", ownedBy(reference(live)), w.absentOwner())
	w.create(secrets, "dependent", ownedBy(reference(middle)))
}

// writesIn returns how often the collector writes in the time.
func (h *webhook) writesIn(t *testing.T, period time.Duration) int32 {
	t.Helper()
	before := h.calls.Load()
	<-time.After(period)
	return h.calls.Load() - before
}

// The webhook looks for an object elsewhere, does not find it, and hands the error on, as controller-runtime does.
func TestDependentOfObjectThatWebhookDeniesStays(t *testing.T) {
	t.Parallel()
	for _, which := range []side{ours, stock} {
		t.Run(string(which), func(t *testing.T) {
			w := start(t, which, false).world(t)
			hook := newWebhook(t, func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				status := apierrors.NewNotFound(configMaps.GroupVersionResource.GroupResource(), request.Name).ErrStatus
				return &admissionv1.AdmissionResponse{Result: &status}
			})
			_, err := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(w.ctx, &registrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
				Webhooks: []registrationv1.ValidatingWebhook{{
					Name: "denies.e2e.exeunt.io", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(registrationv1.SideEffectClassNone), ClientConfig: hook.client(), Rules: updates(),
				}},
			}, metav1.CreateOptions{})
			must(t, err, "create webhook configuration")
			w.awaitWebhook(func(err error) bool { return apierrors.IsNotFound(err) })
			w.hasMiddle()
			w.await("the collector was denied", func() bool { return hook.calls.Load() > 0 })
			writes := hook.writesIn(t, 10*time.Second)
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
			hook := newWebhook(t, func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
				var old metav1.PartialObjectMetadata
				if err := json.Unmarshal(request.OldObject.Raw, &old); err != nil {
					t.Error(err)
				}
				references, _ := json.Marshal(old.OwnerReferences) // a slice of strings and booleans
				change := `[{"op":"add","path":"/metadata/ownerReferences","value":` + string(references) + `}]`
				if request.Name == "probe" {
					change = `[{"op":"add","path":"/metadata/labels","value":{"undone":"yes"}}]`
				}
				return &admissionv1.AdmissionResponse{Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: []byte(change)}
			})
			_, err := w.typed.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(w.ctx, &registrationv1.MutatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
				Webhooks: []registrationv1.MutatingWebhook{{
					Name: "undoes.e2e.exeunt.io", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(registrationv1.SideEffectClassNone), ClientConfig: hook.client(), Rules: updates(),
				}},
			}, metav1.CreateOptions{})
			must(t, err, "create webhook configuration")
			w.awaitWebhook(func(error) bool { return w.get(configMaps, "probe").GetLabels()["undone"] == "yes" })
			w.hasMiddle()
			w.await("a write of the collector was undone", func() bool { return hook.calls.Load() > 0 })
			writes := hook.writesIn(t, 10*time.Second)
			w.expectKept(secrets, "dependent")
			t.Logf("%s: %d more writes in ten seconds", which, writes)
			if which == ours && writes > 20 {
				t.Errorf("%d writes in ten seconds", writes)
			}
		})
	}
}

// awaitWebhook updates the object "probe" until the result shows that the API server calls the webhook.
func (w *world) awaitWebhook(called func(error) bool) {
	w.t.Helper()
	w.create(configMaps, "probe")
	w.await("the webhook is called", func() bool {
		_, err := w.in(configMaps).Patch(w.ctx, "probe", types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
		return called(err)
	})
}
