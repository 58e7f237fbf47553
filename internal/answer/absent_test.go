package answer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/internal/answer"
)

// ofServer is the API server's answer to a read of a claim that is gone.
const ofServer = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"persistentvolumeclaims \"data\" not found",` +
	`"reason":"NotFound","details":{"name":"data","kind":"persistentvolumeclaims"},"code":404}`

// ofPath is the API server's answer to a path that it does not serve.
const ofPath = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource",` +
	`"reason":"NotFound","details":{},"code":404}`

// Each answer comes over HTTP, and through the typed client.
func TestOnlyAnAnswerAboutTheObjectProvesItsAbsence(t *testing.T) {
	for name, test := range map[string]struct {
		code       int
		kind, body string
		absent     bool
	}{
		"the API server":            {404, "application/json", ofServer, true},
		"path that is not served":   {404, "application/json", ofPath, false},
		"load balancer":             {404, "text/html", "<html>404 Not Found</html>", false},
		"proxy":                     {404, "text/plain", "404 page not found\n", false},
		"proxy without text":        {404, "", "", false},
		"gateway that answers JSON": {404, "application/json", `{"message":"no Route matched with those values"}`, false},
		"conflict": {409, "application/json",
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","details":{"name":"data"},"code":409}`,
			false},
		"the answer of another name": {404, "application/json",
			`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"name":"other"},"code":404}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.kind)
				w.WriteHeader(test.code)
				_, _ = fmt.Fprint(w, test.body)
			}))
			defer server.Close()
			client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})
			_, err := client.CoreV1().PersistentVolumeClaims("default").Get(context.Background(), "data", metav1.GetOptions{})
			if err == nil {
				t.Fatal("no error")
			}
			if _, exists, read := answer.Get(t.Context(), "data", client.CoreV1().PersistentVolumeClaims("default").
				Get); exists || (read == nil) != test.absent {
				t.Errorf("Get returns exists %t and error %v, want an error: %t", exists, read, !test.absent)
			}
			for _, err := range []error{err, fmt.Errorf("read claim: %w", err)} {
				if got := answer.IsAbsent(err, "data"); got != test.absent {
					t.Errorf("Is(%v) = %v, want %v", err, got, test.absent)
				}
				if got := answer.IsAbsentOfKind(err, "data", "PersistentVolumeClaims"); got != test.absent {
					t.Errorf("IsOfKind(%v) = %v, want %v", err, got, test.absent)
				}
			}
		})
	}
}

func TestOtherErrorsProveNothing(t *testing.T) {
	for _, err := range []error{nil, errors.New("connection refused"), context.DeadlineExceeded,
		apierrors.NewForbidden(v1.Resource("secrets"), "data", nil)} {
		if answer.IsAbsent(err, "data") || answer.IsAbsentOfKind(err, "data", "secrets") {
			t.Errorf("absent after %v", err)
		}
	}
	if missing := apierrors.NewNotFound(v1.Resource("namespaces"), "data"); answer.IsAbsentOfKind(missing, "data",
		"secrets") {
		t.Error("an absent namespace is no absent secret")
	}
}

// Lists are decoded from any JSON object: a page of another server is an empty one.
func TestListWithoutVersionIsNoList(t *testing.T) {
	failed := errors.New("unavailable")
	if _, err := answer.CheckedList((*v1.PodList)(nil), failed); !errors.Is(err, failed) {
		t.Errorf("no answer: %v", err)
	}
	for version, want := range map[string]bool{"": true, "7": false} {
		if _, err := answer.CheckedList(&v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}},
			nil); (err != nil) != want {
			t.Errorf("version %q: %v", version, err)
		}
	}
}
