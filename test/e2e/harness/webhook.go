package harness

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
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Webhook is an admission webhook that answers the requests of the programs, and dry runs, with which a test finds out
// whether the API server calls it. It allows all other requests, and all once it is switched off.
type Webhook struct {
	*httptest.Server
	calls atomic.Int32
	off   atomic.Bool
}

// WebhookAnswer answers one request.
type WebhookAnswer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

// NewWebhook serves a webhook until the test ends. The function says which requests are those of the programs.
func NewWebhook(t testing.TB, isProgram func(*admissionv1.AdmissionRequest) bool, answer WebhookAnswer) *Webhook {
	t.Helper()
	hook := &Webhook{}
	hook.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
			return
		}
		response, dryRun := &admissionv1.AdmissionResponse{Allowed: true}, review.Request.DryRun != nil &&
			*review.Request.DryRun
		if !hook.off.Load() && (dryRun || isProgram(review.Request)) {
			response = answer(review.Request)
			if !dryRun {
				hook.calls.Add(1)
			}
		}
		response.UID = review.Request.UID
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
	}))
	t.Cleanup(hook.Close)
	return hook
}

// Calls returns how many requests of programs were answered.
func (h *Webhook) Calls() int32 { return h.calls.Load() }

// CallsIn returns how many requests of programs are answered in the time.
func (h *Webhook) CallsIn(period time.Duration) int32 {
	before := h.calls.Load()
	<-time.After(period)
	return h.calls.Load() - before
}

// SwitchOff has the webhook allow everything.
func (h *Webhook) SwitchOff() { h.off.Store(true) }

func (h *Webhook) client() registrationv1.WebhookClientConfig {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
	return registrationv1.WebhookClientConfig{URL: &h.URL, CABundle: authority}
}

// Validating registers the webhook as one that denies requests.
func (h *Webhook) Validating(name string,
	rules ...registrationv1.RuleWithOperations) *registrationv1.ValidatingWebhookConfiguration {
	return &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "denies.e2e.exeunt.io", AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(registrationv1.SideEffectClassNone), ClientConfig: h.client(), Rules: rules,
		}}}
}

// Mutating registers the webhook as one that changes objects.
func (h *Webhook) Mutating(name string,
	rules ...registrationv1.RuleWithOperations) *registrationv1.MutatingWebhookConfiguration {
	return &registrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registrationv1.MutatingWebhook{{
			Name: "undoes.e2e.exeunt.io", AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(registrationv1.SideEffectClassNone), ClientConfig: h.client(), Rules: rules,
		}}}
}

// WritesOf are requests about resources of the core API.
func WritesOf(resources []string, operations ...registrationv1.OperationType) registrationv1.RuleWithOperations {
	return registrationv1.RuleWithOperations{
		Operations: operations, Rule: registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
			Resources: resources},
	}
}

// DenyWithNotFound denies a request with the error of an object that the webhook did not find, which controller-runtime hands on.
func DenyWithNotFound(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	status := apierrors.NewNotFound(schema.GroupResource{Resource: request.Resource.Resource}, request.Name).ErrStatus
	return &admissionv1.AdmissionResponse{Result: &status}
}

// Undo returns an answer that gives the fields, such as "/metadata/finalizers", the values that they had before the request.
func Undo(t testing.TB, fields ...string) WebhookAnswer {
	t.Helper()
	return func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		var before, now map[string]any
		if json.Unmarshal(request.OldObject.Raw, &before) != nil || json.Unmarshal(request.Object.Raw, &now) != nil {
			return &admissionv1.AdmissionResponse{Allowed: true} // nothing to undo
		}
		changes := []map[string]any{}
		for _, field := range fields {
			old, had := valueOf(before, field)
			if _, has := valueOf(now, field); had {
				changes = append(changes, map[string]any{"op": "add", "path": field, "value": old})
			} else if has {
				changes = append(changes, map[string]any{"op": "remove", "path": field})
			}
		}
		body, err := json.Marshal(changes)
		if err != nil {
			t.Error(err)
		}
		return &admissionv1.AdmissionResponse{Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: body}
	}
}

// valueOf returns the value at the JSON pointer.
func valueOf(object map[string]any, field string) (any, bool) {
	var value any = object
	for step := range strings.SplitSeq(strings.TrimPrefix(field, "/"), "/") {
		parent, is := value.(map[string]any)
		if !is {
			return nil, false
		}
		if value, is = parent[step]; !is {
			return nil, false
		}
	}
	return value, true
}
