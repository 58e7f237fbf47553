package integration

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// review is a ConversionReview.
type review struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Request    map[string]any `json:"request,omitempty"`
	Response   map[string]any `json:"response,omitempty"`
}

// dropAnnotations is a conversion webhook that changes the version and loses all annotations.
func dropAnnotations(w http.ResponseWriter, r *http.Request) {
	var asked review
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	objects, _ := asked.Request["objects"].([]any)
	for i := range objects {
		content, _ := objects[i].(map[string]any)
		object := &unstructured.Unstructured{Object: content}
		object.SetAnnotations(nil)
		content["apiVersion"] = asked.Request["desiredAPIVersion"]
	}
	asked.Response = map[string]any{"uid": asked.Request["uid"], "convertedObjects": objects,
		"result": map[string]any{"status": "Success"}}
	asked.Request = nil
	_ = json.NewEncoder(w).Encode(asked)
}

// newConvertedKind creates a CRD with a second version, v2, whose conversion drops annotations.
func newConvertedKind(t *testing.T, group string) kind {
	t.Helper()
	webhook := httptest.NewTLSServer(http.HandlerFunc(dropAnnotations))
	t.Cleanup(webhook.Close)
	conversion, err := json.Marshal(map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []string{"v1"}, "clientConfig": map[string]any{"url": webhook.URL,
			"caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})}}})
	if err != nil {
		t.Fatal(err)
	}
	second := strings.NewReplacer(`"name":"v1"`, `"name":"v2"`, `"storage":true`, `"storage":false`).Replace(plainVersion)
	return newKindWith(t, ours(t), group, fmt.Sprintf(`"conversion":%s,"versions":[%s,%s]`, conversion, plainVersion, second))
}

// #40: through such a version a grace period survives; a forced deletion becomes a plain one.
func TestConversionWithoutAnnotationsKeepsDeadline(t *testing.T) {
	k := newConvertedKind(t, "converted.example.com")
	v2 := func(method, name, contentType string, body any) answer {
		return k.s.do(t, method, strings.Replace(k.path(name), "/v1/", "/v2/", 1), contentType, body)
	}
	remove := func(name string, grace any) answer {
		body := options{"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace}
		return v2(http.MethodDelete, name, asJSON, body)
	}
	for _, name := range []string{"grace", "force", "shorten"} {
		k.create(name, finalizer)
	}
	found := deletionOf(remove("grace", 300).body)
	if found.field != 300 {
		t.Errorf("%+v", found)
	}
	k.expect(k.get("grace"), "grace", found)
	_, revision := k.stored("grace")
	k.expect(remove("grace", nil), "grace", found)
	k.expect(remove("grace", 600), "grace", found)
	k.unchanged("grace", revision)
	k.expect(v2(http.MethodPatch, "grace", asMerge, `{"metadata":{"labels":{"l":"1"}}}`), "grace", found)
	object := v2(http.MethodGet, "grace", asJSON, nil).body
	object.SetLabels(map[string]string{"l": "2"})
	k.expect(v2(http.MethodPut, "grace", asJSON, object.Object), "grace", found)

	k.graceful("shorten", 300)
	shortened := deletionOf(remove("shorten", 60).body)
	if shortened.field != 60 {
		t.Errorf("%+v", shortened)
	}
	k.expect(k.get("shorten"), "shorten", shortened)

	k.expect(remove("force", 0), "force", plain)
	k.expect(remove("shorten", 0), "shorten", plain)
	for _, name := range []string{"grace", "force", "shorten"} {
		if got := v2(http.MethodPatch, name, asMerge, withoutFinalizers); got.code != http.StatusOK {
			t.Errorf("%d %s", got.code, got.text)
		}
		k.gone(name)
	}
}
