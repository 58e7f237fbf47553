package faultproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errInjected is the cause in answers that are faults.
var errInjected = errors.New("injected by the fault proxy")

// statusOf returns the answer of the API server that stands for kind, if there is one.
func statusOf(kind Kind, r *request) (metav1.Status, bool) {
	switch kind {
	case Conflict:
		return apierrors.NewConflict(r.groupResource(), r.name, errInjected).Status(), true
	case TooManyRequests:
		return apierrors.NewTooManyRequests(errInjected.Error(), 1).Status(), true
	case TooManyRequestsBare:
		return apierrors.NewTooManyRequests(errInjected.Error(), 0).Status(), true
	case InternalError, ErrorAfter:
		return apierrors.NewInternalError(errInjected).Status(), true
	case Unavailable:
		return apierrors.NewServiceUnavailable(errInjected.Error()).Status(), true
	case Timeout, TimeoutAfter:
		return apierrors.NewTimeoutError(errInjected.Error(), 0).Status(), true
	case UnknownPath:
		return unknownPath(), true
	case DeniedNotFound, DeniedConflict, DeniedInvalid, DeniedForbidden, DeniedGone:
		return denied(kind, r), true
	case Gone, WatchExpired:
		return apierrors.NewResourceExpired("too old resource version: " + errInjected.Error()).Status(), true
	case TooLargeVersion:
		return tooLargeVersion(), true
	default:
		return metav1.Status{}, false
	}
}

// unknownPath is the answer to a path that is not served.
func unknownPath() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource: " + errInjected.Error(), Details: &metav1.StatusDetails{},
	}
}

// denied is the denial of an admission webhook that hands on an error of its own: the API server keeps code, reason and
// details, and begins the message with the name of the webhook.
func denied(kind Kind, r *request) metav1.Status {
	var status metav1.Status
	switch kind {
	case DeniedNotFound:
		status = apierrors.NewNotFound(r.groupResource(), r.name).Status()
	case DeniedConflict:
		status = apierrors.NewConflict(r.groupResource(), r.name, errInjected).Status()
	case DeniedInvalid:
		status = apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, r.verb, r.groupResource(), r.name,
			errInjected.Error(), 0, false).Status()
	case DeniedGone:
		status = metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonGone,
			Message: errInjected.Error()}
	default:
		status = apierrors.NewForbidden(r.groupResource(), r.name, errInjected).Status()
	}
	status.Message = `admission webhook "webhook.example.com" denied the request: ` + status.Message
	return status
}

// tooLargeVersion is the answer of an API server whose watch cache is behind.
func tooLargeVersion() metav1.Status {
	status := apierrors.NewTimeoutError("Too large resource version: "+errInjected.Error(), 1).Status()
	status.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge,
		Message: "Too large resource version"}}
	return status
}

// noWatchList is the answer of an API server with the feature WatchList off.
func noWatchList() metav1.Status {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", field.ErrorList{
		field.Forbidden(field.NewPath("sendInitialEvents"),
			"sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"),
	}).Status()
}

// reply is a whole response.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

// replyOf returns status as a response in JSON, as the API server answers errors.
func replyOf(status metav1.Status) reply {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // a Status can always be encoded
	}
	header := http.Header{"Content-Type": {runtime.ContentTypeJSON}, "Content-Length": {strconv.Itoa(len(body))}}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return reply{code: int(status.Code), header: header, body: body}
}

// send answers a request.
func (r reply) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.code)
	_, _ = w.Write(r.body) // the program may have gone
}

// replace takes the place of the response of the API server.
func (r reply) replace(response *http.Response) {
	_ = response.Body.Close() // this answer is lost
	response.StatusCode, response.Status, response.Header = r.code, "", r.header
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(r.body)), int64(len(r.body))
}
