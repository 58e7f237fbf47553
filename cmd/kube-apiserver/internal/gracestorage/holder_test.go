package gracestorage

import (
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"
)

func TestOnlyDeletionsGetHolder(t *testing.T) {
	for verb, want := range map[string]bool{"delete": true, "deletecollection": true, "update": false, "": false} {
		t.Run(verb, func(t *testing.T) {
			ctx, held := t.Context(), false
			if verb != "" {
				ctx = request.WithRequestInfo(ctx, &request.RequestInfo{Verb: verb})
			}
			Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				held = holderFrom(r.Context()) != nil
			})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodDelete, "/", nil))
			if held != want {
				t.Errorf("holder %t, want %t", held, want)
			}
		})
	}
}

func TestAdmissionCopiesGracePeriod(t *testing.T) {
	if plugin := (Admission{}); !plugin.Handles(admission.Delete) || plugin.Handles(admission.Update) {
		t.Error("the plugin is for DELETE only")
	}
	for name, tc := range map[string]struct {
		options runtime.Object
		want    *int64
	}{
		"grace period":  {&metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](7)}, ptr.To[int64](7)},
		"none":          {&metav1.DeleteOptions{}, nil},
		"other options": {&metav1.UpdateOptions{}, nil},
		"no options":    {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "a",
				schema.GroupVersionResource{}, "", admission.Delete, tc.options, false, nil)
			ctx := withHolder(t.Context())
			if err := (Admission{}).Validate(ctx, attributes, nil); err != nil {
				t.Error(err)
			}
			if got := holderFrom(ctx).grace(); ptr.Deref(got, -1) != ptr.Deref(tc.want, -1) {
				t.Errorf("grace period %v, want %v", got, tc.want)
			}
			if err := (Admission{}).Validate(t.Context(), attributes, nil); err != nil { // without a holder
				t.Error(err)
			}
		})
	}
}
