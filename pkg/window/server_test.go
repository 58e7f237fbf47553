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

	"github.com/exeunt-io/exeunt/pkg/graceful"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// machine is how the tests name the object.
var machine = cluster.Ref{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "machines"},
	Kind: "Machine", Namespace: "lab", Name: "a"}

// apiServer is an API server of upstream that has one object, or none. The object is as in etcd.
type apiServer struct {
	t      *testing.T
	now    time.Time
	noDate bool
	object *unstructured.Unstructured
	// ours: the API server has graceful deletion.
	ours bool
	// ahead is by how much the clock of upstream's API server is ahead of ours.
	ahead time.Duration
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
	if s.before != nil {
		s.before(len(s.requests))
	}
	s.requests = append(s.requests, request.Method)
	body, err := io.ReadAll(request.Body)
	if err != nil {
		s.t.Error(err)
	}
	status := s.status(request, body)
	answer := any(s.served())
	w.Header().Set("Date", s.clock().UTC().Format(http.TimeFormat))
	if s.noDate {
		w.Header()["Date"] = nil
	}
	w.Header().Set("Content-Type", "application/json")
	if status != nil {
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

// clock returns the time of the API server.
func (s *apiServer) clock() time.Time {
	if s.ours {
		return s.now
	}
	return s.now.Add(s.ahead)
}

// served returns the object as the API server serves it: ours has a grace period in the fields.
func (s *apiServer) served() *unstructured.Unstructured {
	if s.object == nil {
		return nil
	}
	served := s.object.DeepCopy()
	at := served.GetDeletionTimestamp()
	if read := deadline.Of(served); s.ours && read.Kind() == deadline.Graceful && read.Deadline(0).After(at.Time) {
		seconds := int64(read.Deadline(0).Sub(read.Requested()) / time.Second)
		served.SetDeletionTimestamp(&metav1.Time{Time: read.Deadline(0)})
		served.SetDeletionGracePeriodSeconds(&seconds)
	}
	return served
}

func (s *apiServer) patch(body []byte) *metav1.Status {
	before, err := s.served().MarshalJSON()
	if err != nil {
		s.t.Error(err)
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		s.t.Error(err)
	}
	text, err := patch.Apply(before)
	if err != nil {
		return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: 422,
			Message: err.Error()}
	}
	after := &unstructured.Unstructured{}
	if err := after.UnmarshalJSON(text); err != nil {
		s.t.Error(err)
	}
	if s.ours && s.object.GetDeletionTimestamp() != nil { // #37
		return nil
	}
	s.object.SetAnnotations(after.GetAnnotations())
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
	case *wanted.UID != s.object.GetUID(), wanted.ResourceVersion != nil && *wanted.ResourceVersion !=
		s.object.GetResourceVersion():
		return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Code: 409}
	case len(s.object.GetFinalizers()) == 0:
		s.object = nil
		return &metav1.Status{Status: metav1.StatusSuccess, Code: 200}
	case s.ours:
		s.deleteAtOurs(options.GracePeriodSeconds)
	default: // markAsDeleting of upstream's storage
		now := s.clock()
		if at := s.object.GetDeletionTimestamp(); at != nil && at.Time.Before(now) {
			now = at.Time
		}
		s.setDeletion(now, s.annotation())
	}
	return nil
}

// deleteAtOurs follows the design, #1 to #12.
func (s *apiServer) deleteAtOurs(grace *int64) {
	now, read := s.clock(), deadline.Of(s.object)
	state := graceful.State{Existing: existing(read.Kind()), Request: graceful.NoGrace}
	end := now
	if grace != nil {
		end = now.Add(time.Duration(*grace) * time.Second)
		state.Request = graceful.NotEarlier
		if *grace == 0 {
			state.Request = graceful.Zero
		} else if read.Kind() == deadline.NotDeleted || end.Before(read.Deadline(0)) {
			state.Request = graceful.Earlier
		}
	}
	switch graceful.Decide(state).Action {
	case graceful.SetPlain:
		s.setDeletion(now, "")
	case graceful.SetForced:
		if at := s.served().GetDeletionTimestamp(); at != nil && at.Time.Before(now) {
			now = at.Time
		}
		s.setDeletion(now, deadline.Window{Start: now, End: now}.String())
	case graceful.SetDeadline:
		s.setDeletion(now, deadline.Window{Start: now, End: end}.String())
	default: // as it was
	}
}

// setDeletion changes the object in etcd, "" for no annotation.
func (s *apiServer) setDeletion(at time.Time, annotation string) {
	zero, annotations := int64(0), s.object.GetAnnotations()
	s.object.SetDeletionTimestamp(&metav1.Time{Time: at})
	s.object.SetDeletionGracePeriodSeconds(&zero)
	delete(annotations, deadline.Annotation)
	if annotation != "" && annotations == nil {
		annotations = map[string]string{}
	}
	if annotation != "" {
		annotations[deadline.Annotation] = annotation
	}
	s.object.SetAnnotations(annotations)
	s.object.SetResourceVersion(s.object.GetResourceVersion() + "1")
}

// annotation returns that of the object, "" for none.
func (s *apiServer) annotation() string { return s.object.GetAnnotations()[deadline.Annotation] }
