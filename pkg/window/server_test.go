package window

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// machine is how the tests name the object.
var machine = cluster.Ref{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "machines"},
	Kind: "Machine", Namespace: "lab", Name: "a"}

// apiServer is an API server of upstream that has one object, or none.
type apiServer struct {
	t      *testing.T
	now    time.Time
	noDate bool
	object *unstructured.Unstructured
	// ours: the API server has graceful deletion.
	ours bool
	// answer returns an answer to a request instead of that of the server.
	answer func(*http.Request) *metav1.Status
	// patched is called after the next PATCH.
	patched func()
	// before is called before each request with its number.
	before   func(number int)
	requests []string
}

func newAPIServer(t *testing.T, object *metav1.ObjectMeta) *apiServer {
	t.Helper()
	s := &apiServer{t: t, now: at(10)}
	if object != nil {
		s.put(object)
	}
	return s
}

// put replaces the object.
func (s *apiServer) put(object *metav1.ObjectMeta) {
	text, err := json.Marshal(metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Machine"}, ObjectMeta: *object})
	if err != nil {
		s.t.Error(err)
	}
	s.object = &unstructured.Unstructured{}
	if err := s.object.UnmarshalJSON(text); err != nil {
		s.t.Error(err)
	}
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Date", s.now.UTC().Format(http.TimeFormat))
	if s.noDate {
		w.Header()["Date"] = nil
	}
	w.Header().Set("Content-Type", "application/json")
	if s.before != nil {
		s.before(len(s.requests))
	}
	s.requests = append(s.requests, request.Method)
	body, err := io.ReadAll(request.Body)
	if err != nil {
		s.t.Error(err)
	}
	answer := any(s.object)
	if status := s.status(request, body); status != nil {
		w.WriteHeader(int(status.Code))
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer = status
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Error(err)
	}
}

// status carries out a request. It is nil if the object is the answer.
func (s *apiServer) status(request *http.Request, body []byte) *metav1.Status {
	if s.answer != nil {
		if status := s.answer(request); status != nil {
			return status
		}
	}
	switch {
	case s.object == nil:
		return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404,
			Details: &metav1.StatusDetails{Name: "a", Kind: "machines"}}
	case request.Method == http.MethodPatch:
		return s.patch(body)
	case request.Method == http.MethodDelete:
		return s.delete(body)
	}
	return nil
}

func (s *apiServer) patch(body []byte) *metav1.Status {
	before, err := s.object.MarshalJSON()
	if err != nil {
		s.t.Error(err)
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		s.t.Error(err)
	}
	after, err := patch.Apply(before)
	if err != nil {
		return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: 422,
			Message: err.Error()}
	}
	if err := s.object.UnmarshalJSON(after); err != nil {
		s.t.Error(err)
	}
	s.object.SetResourceVersion(s.object.GetResourceVersion() + "1")
	if s.patched != nil {
		s.patched()
	}
	return nil
}

func (s *apiServer) delete(body []byte) *metav1.Status {
	var options metav1.DeleteOptions
	if err := json.Unmarshal(body, &options); err != nil {
		s.t.Error(err)
	}
	wanted := options.Preconditions
	switch {
	case wanted == nil || wanted.UID == nil:
		s.t.Errorf("a DELETE has no UID: %s", body)
		return nil
	case *wanted.UID != s.object.GetUID(), wanted.ResourceVersion != nil && *wanted.ResourceVersion !=
		s.object.GetResourceVersion():
		return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Code: 409}
	case len(s.object.GetFinalizers()) == 0:
		s.object = nil
		return &metav1.Status{Status: metav1.StatusSuccess, Code: 200}
	case s.ours && options.GracePeriodSeconds != nil:
		end := s.now.Add(time.Duration(*options.GracePeriodSeconds) * time.Second)
		s.object.SetDeletionTimestamp(&metav1.Time{Time: end})
		s.object.SetDeletionGracePeriodSeconds(options.GracePeriodSeconds)
		s.object.SetAnnotations(map[string]string{deadline.Annotation: deadline.Window{Start: s.now, End: end}.String()})
	case s.object.GetDeletionTimestamp() == nil:
		zero := int64(0)
		s.object.SetDeletionTimestamp(&metav1.Time{Time: s.now.Add(2 * time.Second)})
		s.object.SetDeletionGracePeriodSeconds(&zero)
	}
	return nil
}

// annotation returns that of the object, "" for none.
func (s *apiServer) annotation() string { return s.object.GetAnnotations()[deadline.Annotation] }
