package sources_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	snapshotclient "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/provisioner/sources"
)

// rights say whether snapshots may be updated, and what the API server says of the rights, and hold the snapshot as
// stored and as written.
type rights struct {
	update  bool
	allowed bool
	stored  string
	written []byte
}

// updating returns a client of whole snapshots.
func (w *world) updating() rest.Interface {
	w.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		switch {
		case request.URL.Path != "/apis/snapshot.storage.k8s.io/v1/namespaces/ns/volumesnapshots/snap":
			w.t.Errorf("%s %s", request.Method, request.URL.Path)
		case request.Method == http.MethodPut && !w.rights.update:
			answer.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(answer,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no PUT"}`)
		case request.Method == http.MethodPut:
			w.rights.written, _ = io.ReadAll(request.Body)
			_, _ = answer.Write(w.rights.written)
		default:
			_, _ = io.WriteString(answer, w.rights.stored)
		}
	}))
	w.t.Cleanup(server.Close)
	client, err := snapshotclient.NewForConfig(&rest.Config{Host: server.URL})
	must(w.t, err)
	return client.SnapshotV1().RESTClient()
}

// forbidPatches leaves the right to update, or no right, and stores the snapshot with the
// finalizers and an unknown field.
func (w *world) forbidPatches(mayUpdate bool, finalizers ...string) {
	w.t.Helper()
	w.metadata.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(sources.SnapshotResource.GroupResource(), "snap", errors.New("no"))
	})
	list := ""
	if len(finalizers) > 0 { // the API server omits an empty list
		list = `,"finalizers":["` + strings.Join(finalizers, `","`) + `"]`
	}
	w.rights = rights{update: mayUpdate, stored: `{"kind":"VolumeSnapshot","apiVersion":"snapshot.storage.k8s.io/v1",` +
		`"metadata":{"namespace":"ns","name":"snap","uid":"uid","resourceVersion":"1"` + list +
		`},"spec":{"unknown":"kept"}}`}
}

// wrote returns the finalizers of the updated snapshot.
func (w *world) wrote() string {
	w.t.Helper()
	var written struct {
		Metadata struct {
			ResourceVersion string
			Finalizers      []string
		}
		Spec struct{ Unknown string }
	}
	must(w.t, json.Unmarshal(w.rights.written, &written))
	if written.Metadata.ResourceVersion != "1" || written.Spec.Unknown != "kept" {
		w.t.Errorf("written: %s", w.rights.written)
	}
	return strings.Join(written.Metadata.Finalizers, " ")
}

func TestUpdateReplacesForbiddenPatch(t *testing.T) {
	w := newWorld(t, 0, snapshot("snap", foreign, ours))
	w.forbidPatches(true, foreign)
	must(t, w.Protect(t.Context(), snapshot("snap", foreign)))
	if got := w.wrote(); got != foreign+" "+ours {
		t.Errorf("protected, the snapshot has the finalizers %q", got)
	}
	w.forbidPatches(true)
	must(t, w.Protect(t.Context(), snapshot("snap")))
	if got := w.wrote(); got != ours {
		t.Errorf("protected, the snapshot has the finalizers %q", got)
	}
	w.forbidPatches(true, foreign, ours)
	must(t, w.Reconcile(t.Context(), "ns/snap"))
	if got := w.wrote(); got != foreign {
		t.Errorf("unprotected, the snapshot has the finalizers %q", got)
	}
	if len(w.events.Events) > 0 {
		t.Errorf("event %s", <-w.events.Events)
	}
}

func TestUpdateKeepsChangedFinalizers(t *testing.T) {
	now := snapshot("snap", foreign, "example.com/since")
	now.ResourceVersion = "2"
	w := newWorld(t, 0, now)
	w.forbidPatches(true, foreign, "example.com/since")
	must(t, w.Protect(t.Context(), snapshot("snap", foreign)))
	if got := w.wrote(); got != foreign+" example.com/since "+ours {
		t.Errorf("protected, the snapshot has the finalizers %q", got)
	}
}

func TestUpdateFailsForChangedFinalizers(t *testing.T) {
	now := snapshot("snap", foreign, "example.com/read-again")
	now.ResourceVersion = "2"
	w := newWorld(t, 0, now)
	w.forbidPatches(true, foreign, "example.com/since")
	if err := w.Protect(t.Context(), snapshot("snap", foreign)); err == nil || w.rights.written != nil {
		t.Errorf("err = %v, written: %s", err, w.rights.written)
	}
}

func TestForbiddenProtectionIsReportedOnSnapshot(t *testing.T) {
	w := newWorld(t, 0, snapshot("snap", ours))
	w.forbidPatches(false, foreign)
	must(t, w.Protect(t.Context(), snapshot("snap", foreign)))
	if said := <-w.events.Events; !strings.HasPrefix(said,
		"Warning SnapshotProtectionMissing The snapshot is not protected") {
		t.Errorf("event %s", said)
	}
	w.forbidPatches(false, ours)
	must(t, w.Reconcile(t.Context(), "ns/snap"))
	if said := <-w.events.Events; !strings.Contains(said, ours+" stays on the snapshot") {
		t.Errorf("event %s", said)
	}
}

// An admission webhook answers 403 as well. The snapshot is not left without protection for that.
func TestForbiddingWebhookIsNoMissingRight(t *testing.T) {
	w := newWorld(t, 0, snapshot("snap", ours))
	w.forbidPatches(false, foreign)
	w.rights.allowed = true
	if err := w.Protect(t.Context(), snapshot("snap", foreign)); !apierrors.IsForbidden(err) {
		t.Errorf("Protect = %v", err)
	}
	w.forbidPatches(false, ours)
	w.rights.allowed = true
	if err := w.Reconcile(t.Context(), "ns/snap"); !apierrors.IsForbidden(err) {
		t.Errorf("Reconcile = %v", err)
	}
	if len(w.events.Events) != 1 {
		t.Fatalf("%d events", len(w.events.Events))
	}
	if said := <-w.events.Events; !strings.HasPrefix(said, "Warning WriteRefused Removing the finalizer "+ours) {
		t.Errorf("event %s", said)
	}
}

// A webhook denies the removal with the 404 of another object. The snapshot lives, and the removal is repeated.
func TestDeniedRemovalIsRepeated(t *testing.T) {
	w := newWorld(t, 0, snapshot("snap", ours))
	w.metadata.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(sources.SnapshotResource.GroupResource(), "snap")
	})
	if err := w.Reconcile(t.Context(), "ns/snap"); err == nil {
		t.Error("no error, so that nobody tries again, and the snapshot has its finalizer")
	}
}
