package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// The pod is deleted while the provisioner asks the API server for its rights.
func TestStopDuringStartIsNoError(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "csi.sock")
	driver, err := csimock.Start(t.Context(), csimock.Config{}, socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = driver.Stop() }()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reviewed := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			_, _ = io.Copy(io.Discard, r.Body) // or the end of the connection is not seen
			reviewed = true
			stop()
			<-r.Context().Done()
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"volumeattributesclasses"}]}`)
	}))
	defer server.Close()

	work, err := newOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	work.AddFlags(flags)
	if err := flags.Parse([]string{"--csi-address=" + socket, "--master=" + server.URL}); err != nil {
		t.Fatal(err)
	}
	if err := work.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil once the context has ended", err)
	}
	if !reviewed {
		t.Error("no access review was sent")
	}
}
