package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// unreadable returns why the object could not be read, with the right that is missing.
// Errors of the connection are returned unchanged.
func unreadable(ref cluster.Ref, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
	}
	return fmt.Errorf("read %s %s: %s", ref.Kind, ref.Name, cluster.Failure("get", ref.Resource.GroupResource(),
		ref.Namespace, err))
}

// sentence returns an error of a request as one sentence.
func (e *explanation) sentence(err error) error { return sentenceOf(err, e.config.Host, e.timeout) }

// reach returns a sentence if the API server at host does not answer, or does not know the user.
func reach(ctx context.Context, reader *cluster.Reader, host string, timeout time.Duration) error {
	return reachWithin(ctx, reader, host, timeout, "--timeout")
}

// reachWithin is reach for a command with another flag for the time.
func reachWithin(ctx context.Context, reader *cluster.Reader, host string, timeout time.Duration, flag string) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := reader.Reach(limited)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return sentenceOfFlag(err, host, timeout, flag)
}

// sentenceOf returns an error of a request to the host as one sentence.
func sentenceOf(err error, host string, timeout time.Duration) error {
	return sentenceOfFlag(err, host, timeout, "--timeout")
}

func sentenceOfFlag(err error, host string, timeout time.Duration, flag string) error {
	var request *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(errors.Unwrap(err)), errors.As(err, &request) &&
		request.Timeout():
		return fmt.Errorf("the API server %s did not answer within %s (%s): nothing was seen", host, timeout, flag)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server %s does not accept the credentials of the kubeconfig", host)
	case errors.As(err, &request):
		return fmt.Errorf("could not reach the API server %s: %s; see --kubeconfig, --context and --server", host,
			cause(request))
	}
	return err
}

// cause returns the innermost reason of a failed connection.
func cause(request *url.Error) string {
	var operation *net.OpError
	if errors.As(request, &operation) {
		return operation.Err.Error()
	}
	return request.Err.Error()
}

// oneLine returns the error as a line that cannot control the terminal.
func oneLine(err error) string { return terminal.Printable(strings.TrimSpace(err.Error())) }
