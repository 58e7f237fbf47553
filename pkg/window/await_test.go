package window

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// await waits until the object with the UID u is gone, at an API server whose answer to a watch is given.
func await(t *testing.T, found *metav1.ObjectMeta, watch string) error {
	t.Helper()
	s := newAPIServer(t, found)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !strings.Contains(request.URL.RawQuery, "watch=true") {
			s.ServeHTTP(w, request)
			return
		}
		if got, want := request.URL.Query().Get("fieldSelector"), "metadata.name=a"; got != want {
			t.Errorf("watches %s, want %s", got, want)
		}
		w.Header().Set("Content-Type", "application/json")
		if watch == "" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte(watch))
	}))
	defer server.Close()
	reader, err := cluster.NewReader(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	deleter := &Deleter{reader: reader}
	return deleter.AwaitGone(t.Context(), Result{Ref: machine, UID: "u"})
}

// transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }

// roundTrip answers a request of the client.
func (s *apiServer) roundTrip(request *http.Request) (*http.Response, error) {
	if request.Body == nil {
		request.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// The API server starts again while the object is awaited.
func TestWaitSurvivesRestartOfServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, requests := newAPIServer(t, nil), 0
		reader, err := cluster.NewReader(&rest.Config{Host: "http://api", Transport: transport(
			func(request *http.Request) (*http.Response, error) {
				if requests++; requests < 4 {
					return nil, errors.New("connection refused")
				}
				return s.roundTrip(request)
			})})
		if err != nil {
			t.Fatal(err)
		}
		deleter := &Deleter{reader: reader}
		if err := deleter.AwaitGone(t.Context(), Result{Ref: machine, UID: "u"}); err != nil || requests != 4 {
			t.Errorf("error %v after %d requests", err, requests)
		}
	})
}

func TestWaitEndsWithObject(t *testing.T) {
	const deleted = `{"type":"DELETED","object":{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"a","uid":"u"}}}`
	other := object(time.Time{}, "")
	other.UID = "other"
	for name, tc := range map[string]struct {
		found       *metav1.ObjectMeta
		watch, want string
	}{
		"deleted meanwhile":      {object(at(1), ""), deleted, ""},
		"gone before":            {nil, "", ""},
		"another has its name":   {other, "", ""},
		"no right to watch":      {object(at(1), ""), "", "no right to watch machines in namespace lab; grant the rule"},
		"deleted, after a write": {object(at(1), ""), strings.Replace(deleted, "DELETED", "MODIFIED", 1) + deleted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := await(t, tc.found, tc.watch)
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}
