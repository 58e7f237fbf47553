package garbage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/garbagecollector"
)

// Call is a request of a collector. Equal calls are equal values.
type Call struct {
	// Pass is what sent the call.
	Pass Pass
	// Verb is get, list, delete or patch.
	Verb string
	// Kind is the number of the kind.
	Kind            int
	Namespace, Name string
	// Limit is the size of a page.
	Limit int
	Body  string
}

// writes reports whether the call changes an object.
func (c Call) writes() bool { return c.Verb == "delete" || c.Verb == "patch" }

// outcome is how a call ends.
type outcome int

const (
	succeeded outcome = iota
	notFound
	// pathNotFound: the API server does not serve the path.
	pathNotFound
	conflicted
	invalid
	// forbidden and expired, 410: an admission webhook denies.
	forbidden
	expired
	// broken: the API server fails.
	broken
)

// Answer is the answer to a call.
type Answer struct {
	Outcome outcome
	// Object is what get, delete and patch return; of a deletion, nil if nothing is left.
	Object *Object
	// Gone is the UID of the object that a deletion removed at once.
	Gone string
	// Objects and Version are a list; Continue: there is another page.
	Objects  []*Object
	Version  int
	Continue bool
}

// String identifies the answer.
func (a Answer) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d %s %d %t ", a.Outcome, a.Gone, a.Version, a.Continue)
	a.Object.text(&out)
	for _, o := range a.Objects {
		o.text(&out)
	}
	return out.String()
}

// failure returns the error of an answer, nil for success.
func (a Answer) failure(kind *Kind, call Call) *apierrors.StatusError {
	resource := kind.GroupResource()
	switch a.Outcome {
	case succeeded:
		return nil
	case notFound:
		return apierrors.NewNotFound(resource, call.Name)
	case pathNotFound:
		return apierrors.NewGenericServerResponse(
			http.StatusNotFound, call.Verb, resource, call.Name, "404 page not found", 0, true,
		)
	case conflicted:
		return apierrors.NewConflict(resource, call.Name, errors.New("the precondition fails"))
	case invalid:
		return apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "a test of the patch fails", 0, false,
		)
	case forbidden:
		return apierrors.NewForbidden(resource, call.Name, errors.New("a webhook denies"))
	case expired:
		return apierrors.NewResourceExpired("a webhook denies")
	case broken:
	}
	return apierrors.NewInternalError(errors.New("the API server fails"))
}

// contextKey finds the pass in the context of its calls.
type contextKey struct{}

// sender is a pass of an actor.
type sender struct {
	*actor
	pass Pass
}

// send hands a call to the model, and waits for its answer.
func send(ctx context.Context, call Call) (Answer, error) {
	from, ok := ctx.Value(contextKey{}).(sender)
	if !ok {
		return Answer{}, errors.New("a call is sent without the context of its pass")
	}
	call.Pass = from.pass
	w := waiting{call: call, answer: make(chan Answer, 1), sent: from.clock.Now()}
	select {
	case from.calls <- w:
	case <-from.ctx.Done():
		return Answer{}, from.ctx.Err()
	}
	select {
	case answer := <-w.answer:
		return answer, nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}

// reader reads metadata for a collector.
type reader struct{ *Config }

var _ metadata.Interface = reader{}

// Resource returns the client of a kind.
func (r reader) Resource(resource schema.GroupVersionResource) metadata.Getter {
	kind := slices.IndexFunc(r.Kinds, func(k *Kind) bool { return k.GroupVersionResource() == resource })
	return getter{Config: r.Config, kind: kind}
}

type getter struct {
	metadata.Getter
	*Config
	kind      int
	namespace string
}

// Namespace returns the client for a namespace.
func (g getter) Namespace(namespace string) metadata.ResourceInterface {
	g.namespace = namespace
	return g
}

// Get reads an object.
func (g getter) Get(
	ctx context.Context, name string, _ metav1.GetOptions, _ ...string,
) (*metav1.PartialObjectMetadata, error) {
	call := Call{Verb: "get", Kind: g.kind, Namespace: g.namespace, Name: name}
	answer, err := send(ctx, call)
	if err != nil {
		return nil, err
	}
	if failure := answer.failure(g.Kinds[g.kind], call); failure != nil {
		return nil, failure
	}
	return g.metadata(answer.Object), nil
}

// List reads a page.
func (g getter) List(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	call := Call{Verb: "list", Kind: g.kind, Namespace: g.namespace, Limit: int(options.Limit)}
	answer, err := send(ctx, call)
	if err != nil {
		return nil, err
	}
	if failure := answer.failure(g.Kinds[g.kind], call); failure != nil {
		return nil, failure
	}
	list := &metav1.PartialObjectMetadataList{
		ListMeta: metav1.ListMeta{ResourceVersion: g.Kinds[g.kind].version(answer.Version)},
	}
	if answer.Continue {
		list.Continue = "more"
	}
	for _, o := range answer.Objects {
		list.Items = append(list.Items, *g.metadata(o))
	}
	return list, nil
}

// transport sends the writes of collectors.
type transport struct{ *Config }

// newWriter returns the client for writes.
func newWriter(c *Config) (rest.Interface, error) {
	return garbagecollector.NewWriteClient(&rest.Config{Host: "http://model", Transport: transport{c}, QPS: -1})
}

// RoundTrip sends a write.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	call, err := t.call(request)
	if err != nil {
		return nil, err
	}
	answer, err := send(request.Context(), call)
	if err != nil {
		return nil, err
	}
	kind := t.Kinds[call.Kind]
	var body any
	code := http.StatusOK
	if failure := answer.failure(kind, call); failure != nil {
		body, code = failure.Status(), int(failure.Status().Code)
	} else if answer.Object != nil {
		body = t.metadata(answer.Object)
	} else {
		body = metav1.Status{
			Status:  metav1.StatusSuccess,
			Details: &metav1.StatusDetails{Name: call.Name, Kind: kind.Resource, UID: uidOf(answer.Gone)},
		}
	}
	if status, is := body.(metav1.Status); is {
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		body = status
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
		ContentLength: int64(len(text)), Request: request,
	}, nil
}

// call decodes a write.
func (t transport) call(request *http.Request) (Call, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return Call{}, fmt.Errorf("read request: %w", err)
	}
	call := Call{Verb: strings.ToLower(request.Method), Body: string(body)}
	path := strings.Split(strings.TrimPrefix(request.URL.Path, "/"), "/")
	if i := slices.Index(path, "namespaces"); i >= 0 && i+3 < len(path) {
		call.Namespace = path[i+1]
	}
	call.Name = path[len(path)-1]
	call.Kind = slices.IndexFunc(t.Kinds, func(k *Kind) bool { return k.Resource == path[len(path)-2] })
	if call.Kind < 0 {
		return Call{}, fmt.Errorf("unknown path %s", request.URL.Path)
	}
	return call, nil
}
