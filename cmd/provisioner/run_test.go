package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// runBeside runs the program beside the mock driver and an API server until it returns.
func runBeside(t *testing.T, server http.HandlerFunc) (stop func(), run func() error) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	driver, err := csimock.Start(t.Context(), csimock.Config{}, socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = driver.Stop() })
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	api := httptest.NewServer(server)
	t.Cleanup(api.Close)
	work, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	work.AddFlags(flags)
	if err := flags.Parse([]string{"--csi-address=" + socket, "--master=" + api.URL}); err != nil {
		t.Fatal(err)
	}
	return stop, func() error { return work.Run(ctx) }
}

// writeResources answers every request with resources of one group.
func writeResources(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"volumeattributesclasses"}]}`)
}

// The pod is deleted while the provisioner asks the API server for its rights.
func TestStopDuringStartIsNoError(t *testing.T) {
	var stop func()
	reviewed := false
	stop, run := runBeside(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen
			reviewed = true
			stop()
			<-r.Context().Done()
		}
		writeResources(w)
	})
	if err := run(); err != nil {
		t.Errorf("Run = %v, want nil once the context has ended", err)
	}
	if !reviewed {
		t.Error("no access review was sent")
	}
}

// An API server that is overloaded must not end the program: the next start would list everything again.
func TestUnansweredReviewDoesNotEndTheProgram(t *testing.T) {
	var stop func()
	var reviewed, listed atomic.Bool
	stop, run := runBeside(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			reviewed.Store(true)
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasSuffix(r.URL.Path, "/persistentvolumes"):
			listed.Store(true)
			stop()
			writeResources(w)
		default:
			writeResources(w)
		}
	})
	if err := run(); err != nil {
		t.Errorf("Run = %v", err)
	}
	if !reviewed.Load() || !listed.Load() {
		t.Errorf("access review: %v, caches filled after it: %v", reviewed.Load(), listed.Load())
	}
}
