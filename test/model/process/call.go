package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/test/model/server"
)

// Call is a request of a program that waits for its answer. Two equal calls are the same
// value.
type Call struct {
	// Request is the request to the API server; its method is "" for a call to the driver.
	Request server.Request
	// Create is the name of the volume that CreateVolume creates, Delete the handle that
	// DeleteVolume deletes. Message is the whole CreateVolumeRequest, in JSON.
	Create, Message string
	Delete          string
}

// String names the call in one line.
func (c Call) String() string {
	switch {
	case c.Create != "":
		return "CreateVolume " + c.Create
	case c.Delete != "":
		return "DeleteVolume " + c.Delete
	}
	path := c.Request.Path
	for _, prefix := range []string{"/api/v1/", "/apis/"} {
		path = strings.TrimPrefix(path, prefix)
	}
	if c.Request.Query != "" {
		path += "?" + c.Request.Query
	}
	return strings.TrimSpace(c.Request.Method + " " + path + " " + c.Request.Body)
}

// Answer is the answer to a Call.
type Answer struct {
	// Lost: the connection broke; the program does not know whether the call had an effect.
	Lost bool
	// Response is the response of the API server.
	Response server.Response
	// Code is the code of the driver. Handle is the volume that CreateVolume returned; Small: it is
	// smaller than the claim needs.
	Code   codes.Code
	Handle string
	Small  bool
}

// errLost is the error of a call whose answer is lost.
var errLost = errors.New("the connection broke before the answer came")

// waiting is a call of an actor and where its answer goes.
type waiting struct {
	call   Call
	answer chan Answer
	// loop is the loop whose pass sent the call, Beside for what works beside the loops.
	loop int
}

// loopKey finds the loop of a pass in the context of its requests.
type loopKey struct{}

// contextKey finds the actor in the context of its requests.
type contextKey struct{}

// transport hands the requests of all programs to the actor in their context.
type transport struct{}

func (transport) RoundTrip(request *http.Request) (*http.Response, error) {
	sender, ok := request.Context().Value(contextKey{}).(*actor)
	if !ok {
		return nil, fmt.Errorf("%s %s is sent without the context of its program", request.Method, request.URL)
	}
	call := Call{Request: server.Request{
		Method: request.Method, Path: request.URL.Path, Query: request.URL.RawQuery,
		ContentType: request.Header.Get("Content-Type"),
	}}
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
		call.Request.Body = string(body)
	}
	answer, err := sender.send(request.Context(), call)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: answer.Response.Code, Status: http.StatusText(answer.Response.Code),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader([]byte(answer.Response.Body))), ContentLength: int64(len(answer.Response.Body)),
		Request: request,
	}, nil
}

// newClient returns the client that all programs of a model share.
func newClient() (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(&rest.Config{
		Host: "http://model", Transport: transport{}, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	})
}

// driver sends the calls to the storage system.
type driver struct{}

func (driver) CreateVolume(ctx context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	message, err := protojson.Marshal(request)
	if err != nil {
		return nil, err
	}
	answer, err := sendToDriver(ctx, Call{
		Create: request.GetName(), Message: strings.ReplaceAll(string(message), " ", ""),
	})
	if err != nil {
		return nil, err
	}
	capacity := request.GetCapacityRange().GetRequiredBytes()
	if answer.Small {
		capacity = 1
	}
	return &spec.CreateVolumeResponse{Volume: &spec.Volume{VolumeId: answer.Handle, CapacityBytes: capacity}}, nil
}

func (driver) DeleteVolume(ctx context.Context, handle string, _ map[string]string) error {
	_, err := sendToDriver(ctx, Call{Delete: handle})
	return err
}

func sendToDriver(ctx context.Context, call Call) (Answer, error) {
	sender, ok := ctx.Value(contextKey{}).(*actor)
	if !ok {
		return Answer{}, fmt.Errorf("%s is sent without the context of its program", call)
	}
	answer, err := sender.send(ctx, call)
	switch {
	case err != nil:
		return Answer{}, status.Error(codes.Unavailable, err.Error())
	case answer.Code != codes.OK:
		return Answer{}, status.Error(answer.Code, "the driver fails")
	}
	return answer, nil
}
