package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/rollback"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// removals returns an observation with 1,000 annotations to remove.
func removals(remove func(context.Context) (metav1.Object, error)) *observation {
	decision := rollback.Decision{Action: rollback.Remove, Reason: rollback.Unneeded}
	return &observation{own: list{items: slices.Repeat([]Item{newItem(blocker.Object{Kind: "PersistentVolume", Name: "v"},
		"annotation x", decision, remove)}, 1000)}}
}

func TestWriteWithoutAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Second)
		defer cancel()
		o := &Options{Timeout: time.Minute, Progress: io.Discard}
		_, err := o.execute(ctx, removals(func(ctx context.Context) (metav1.Object, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		if err == nil || ctx.Err() != nil {
			t.Errorf("waited for more than a minute: %v", err)
		}
	})
}

func TestRepeatedErrorsEndTheWrites(t *testing.T) {
	requests := 0
	o := &Options{Timeout: time.Minute, Progress: io.Discard}
	_, err := o.execute(t.Context(), removals(func(context.Context) (metav1.Object, error) {
		requests++
		return nil, errors.New("no right")
	}))
	if requests != mostErrors || err == nil || !strings.Contains(err.Error(), "the rest was left as it is") {
		t.Errorf("%d requests: %v", requests, err)
	}
}

// serving returns the connection to an API server that has the volume with this UID, "" for none.
func serving(t *testing.T, uid string) func() (*cluster.Reader, error) {
	t.Helper()
	return func() (*cluster.Reader, error) {
		return clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch path := request.URL.Path; {
			case path == "/api":
				_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
			case path == "/apis":
				_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
			case path == "/api/v1":
				_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"persistentvolumes","kind":"PersistentVolume","verbs":["get"]}]}`)
			case uid == "":
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"details":{"kind":"persistentvolumes","name":"v"}}`)
			default:
				_, _ = fmt.Fprintf(w, `{"kind":"PersistentVolume","apiVersion":"v1","metadata":{"name":"v","uid":%q}}`, uid)
			}
		}), nil
	}
}

// A webhook's refusal can have any code, and the name of the object.
func TestOnlyReadProvesThatObjectIsGone(t *testing.T) {
	volumes := schema.GroupResource{Resource: "persistentvolumes"}
	notFound, conflict := apierrors.NewNotFound(volumes, "v"), apierrors.NewConflict(volumes, "v", errors.New("denied"))
	unchanged := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"x": "1"}}}
	for name, tc := range map[string]struct {
		uid            string
		object         metav1.Object
		answer         error
		reported, want string
	}{
		"not found, gone":         {"", nil, notFound, "already gone", ""},
		"not found, created anew": {"2", nil, notFound, "already gone", ""},
		"not found, lives":        {"1", nil, notFound, "", "but the object exists"},
		"conflict, lives":         {"1", nil, conflict, "changed meanwhile or a webhook refuses", ""},
		"conflict, gone":          {"", nil, conflict, "already gone", ""},
		"undone":                  {"1", unchanged, nil, "", "left the object as it was"},
		"done":                    {"1", &corev1.PersistentVolume{}, nil, "removed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var progress strings.Builder
			o := &Options{Timeout: time.Minute, Progress: &progress, Connect: serving(t, tc.uid)}
			item := newItem(blocker.Object{Kind: "PersistentVolume", Name: "v", UID: "1"}, "annotation x: 1",
				rollback.Decision{Action: rollback.Remove},
				func(context.Context) (metav1.Object, error) { return tc.object, tc.answer })
			err := o.changeItem(t.Context(), item)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) ||
				!strings.Contains(progress.String(), tc.reported) || tc.reported == "" && progress.Len() > 0 {
				t.Errorf("error %v, progress %q, want %q and %q", err, progress.String(), tc.want, tc.reported)
			}
		})
	}
}
