package controller

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// stored is the server's claim, with a field that this client does not know.
const stored = `{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"namespace":"ns","name":"claim","uid":"1","resourceVersion":"7","finalizers":["other"]},"spec":{"tomorrow":"kept"}}`

// updater is a writer whose server forbids patches. Verbs are its requests, put is the
// last written object.
type updater struct {
	*Writer
	verbs     []string
	put       []byte
	mayPatch  bool
	mayUpdate bool
	readFails bool
	// message is that of a forbidden patch; empty: the method.
	message string
}

func newUpdater(t *testing.T, mayUpdate bool) *updater {
	t.Helper()
	u := &updater{mayUpdate: mayUpdate}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.verbs = append(u.verbs, r.Method)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPatch && !u.mayPatch || r.Method == http.MethodPut && !u.mayUpdate {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"%s"}`,
				cmp.Or(u.message, "no "+r.Method))
			return
		}
		if r.Method == http.MethodGet && u.readFails {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		answer := []byte(stored)
		if r.Method == http.MethodPatch {
			answer = bytes.Replace(answer, []byte(`"7"`), []byte(`"8"`), 1)
		}
		if r.Method == http.MethodPut {
			u.put, _ = io.ReadAll(r.Body)
			answer = u.put
		}
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"}})
	if err != nil {
		t.Fatal(err)
	}
	u.Writer = NewWriter(client, NewVersions())
	return u
}

// observed is the claim in the cache.
func observed(finalizers ...string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "1",
		ResourceVersion: "7", Finalizers: finalizers}}
}

func hold(claim *v1.PersistentVolumeClaim) *patch.Patch {
	return finalizer.Edit(patch.For(claim), claim, finalizer.Change{Add: []finalizer.Name{finalizer.CloneSource}})
}

func TestForbiddenPatchBecomesUpdateThatKeepsUnknownFields(t *testing.T) {
	u := newUpdater(t, true)
	for range 2 {
		now, err := u.PatchClaim(t.Context(), observed("other"), hold(observed("other")))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(now.Finalizers, []string{"other", string(finalizer.CloneSource)}) {
			t.Errorf("finalizers are %v", now.Finalizers)
		}
	}
	var written struct {
		Metadata struct{ ResourceVersion string }
		Spec     struct{ Tomorrow string }
	}
	if err := json.Unmarshal(u.put, &written); err != nil || written.Metadata.ResourceVersion != "7" ||
		written.Spec.Tomorrow != "kept" {
		t.Errorf("written: %s (%v)", u.put, err)
	}
	if want := []string{"PATCH", "GET", "PUT", "GET", "PUT"}; !slices.Equal(u.verbs, want) {
		t.Errorf("requests %v, want %v: what was forbidden is not tried for each write", u.verbs, want)
	}
}

func TestPatchIsTriedAgainAfterUpdates(t *testing.T) {
	u := newUpdater(t, true)
	count := 0
	write := func() {
		t.Helper()
		count++
		if _, err := u.PatchClaim(t.Context(), observed("other"), patch.For(observed()).
			Set("/metadata/labels", map[string]string{"count": strconv.Itoa(count)})); err != nil {
			t.Fatal(err)
		}
	}
	write()
	u.mayPatch = true
	for range updatesPerPatch {
		write()
	}
	if got := len(u.verbs); got != 3+2*updatesPerPatch {
		t.Errorf("%d requests while updates are sent", got)
	}
	u.verbs = nil
	write()
	write()
	if want := []string{"PATCH", "PATCH"}; !slices.Equal(u.verbs, want) {
		t.Errorf("requests %v, want %v: the patch is no longer forbidden", u.verbs, want)
	}
}

func TestUpdateFallbackRunsTestsOfThePatch(t *testing.T) {
	u := newUpdater(t, true)
	stale := observed("other", "gone since")
	stale.ResourceVersion = "6"
	if _, err := u.PatchClaim(t.Context(), stale, hold(stale)); !patch.IsStale(err) {
		t.Errorf("the change rested on what is no longer so, and the error is %v", err)
	}
	if u.put != nil {
		t.Errorf("written: %s", u.put)
	}
}

// The update reads the object first, and the answer to that read proves that it is gone.
func TestUpdateFallbackSaysThatObjectIsGone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		reason, code := "NotFound", http.StatusNotFound
		if r.Method == http.MethodPatch {
			reason, code = "Forbidden", http.StatusForbidden
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"details":{"name":"claim","kind":"persistentvolumeclaims"}}`, reason, code)
	}))
	t.Cleanup(server.Close)
	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "1"}}
	if _, err := NewWriter(client, NewVersions()).PatchClaim(t.Context(), claim,
		patch.For(claim).Set("/a", "b")); !errors.Is(err, ErrGone) {
		t.Errorf("error %v, want that the claim is gone", err)
	}
}

func TestForbiddenPatchAndUpdateReturnPatchError(t *testing.T) {
	u := newUpdater(t, false)
	_, err := u.PatchClaim(t.Context(), observed("other"), hold(observed("other")))
	if err == nil || err.Error() != "patch claim ns/claim: no PATCH" {
		t.Errorf("the error is %v", err)
	}
}

// One answer of a webhook forbids a patch, and the read before the update fails. Nothing
// shows that updates are allowed: with RBAC rules for patches alone, claims waited for hours.
func TestFailedUpdateDoesNotReplacePatches(t *testing.T) {
	u := newUpdater(t, false)
	u.readFails = true
	if _, err := u.PatchClaim(t.Context(), observed("other"), hold(observed("other"))); err == nil {
		t.Fatal("no error")
	}
	u.mayPatch, u.readFails, u.verbs = true, false, nil
	if _, err := u.PatchClaim(t.Context(), observed("other"), hold(observed("other"))); err != nil {
		t.Error(err)
	}
	if want := []string{"PATCH"}; !slices.Equal(u.verbs, want) {
		t.Errorf("requests %v, want %v", u.verbs, want)
	}
}

func TestForbiddenUpdateBecomesPatch(t *testing.T) {
	u := newUpdater(t, true)
	if _, err := u.PatchClaim(t.Context(), observed("other"), hold(observed("other"))); err != nil {
		t.Fatal(err)
	}
	u.mayPatch, u.mayUpdate, u.verbs = true, false, nil
	for range 2 {
		if _, err := u.PatchClaim(t.Context(), observed("other"), hold(observed("other"))); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"GET", "PUT", "PATCH", "PATCH"}; !slices.Equal(u.verbs, want) {
		t.Errorf("requests %v, want %v: the role was changed", u.verbs, want)
	}
}

func TestPatchDeniedByWebhookStaysDenied(t *testing.T) {
	u := newUpdater(t, true)
	u.message = "admission webhook w.example.com denied the request: not now"
	if _, err := u.PatchClaim(t.Context(), observed("other"), hold(observed("other"))); err == nil {
		t.Error("no error")
	}
	if want := []string{"PATCH"}; !slices.Equal(u.verbs, want) {
		t.Errorf("requests %v, want %v", u.verbs, want)
	}
}

// Updates are sent as the role allows, and a webhook denies this one: its words are what the user needs.
func TestUpdateDeniedByWebhookStaysDenied(t *testing.T) {
	u := newUpdater(t, true)
	if _, err := u.PatchClaim(t.Context(), observed("other"), hold(observed("other"))); err != nil {
		t.Fatal(err)
	}
	u.mayUpdate, u.verbs = false, nil
	u.message = "admission webhook w.example.com denied the request: not now"
	_, err := u.PatchClaim(t.Context(), observed("other"), hold(observed("other")))
	if err == nil || !strings.Contains(err.Error(), "w.example.com") {
		t.Errorf("the error is %v", err)
	}
	if want := []string{"GET", "PUT"}; !slices.Equal(u.verbs, want) {
		t.Errorf("requests %v, want %v", u.verbs, want)
	}
}
