package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Nobody must take an audit that could read nothing for a clean one. The exit code is that of any report that says so.
func TestAuditThatReadsNothingSaysSo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		status := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
		if err := json.NewEncoder(w).Encode(status); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	volumes := filepath.Join(t.TempDir(), "volumes.json")
	if err := os.WriteFile(volumes, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for format, fails := range map[string]bool{"": false, "json": false, "name": true} { // a list of names cannot say so
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		command := newAuditCommand(streams, "exeunt")
		command.SetArgs([]string{"--volumes=" + volumes, "--driver=csi.example.com",
			"--kubeconfig=" + writeKubeconfig(t, server.URL), "--settle=0s", "--output=" + format})
		if err := command.ExecuteContext(t.Context()); (err != nil) != fails {
			t.Errorf("--output=%s: %v", format, err)
		}
		if format == "" && !strings.HasSuffix(out.String(), "Nothing can be said: not everything could be read.\n") {
			t.Errorf("printed:\n%s", out.String())
		}
	}
}
