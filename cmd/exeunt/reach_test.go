package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// ofWholeCluster are commands that read a cluster in many lists.
var ofWholeCluster = [][]string{{"status"}, {"status", "-o", "json"}, {"rollback"}, {"rollback", "--confirm"}}

// expectSentence runs the commands, and expects one sentence and exit status 1.
func expectSentence(t *testing.T, server, want string, flags ...string) {
	t.Helper()
	for _, command := range ofWholeCluster {
		args := append(append(command, "--kubeconfig", writeKubeconfig(t, server)), flags...)
		out, err := execute(t.Context(), "exeunt", args...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || out != "" ||
			terminal.ExitStatus(err) != 1 {
			t.Errorf("%v: error %v, exit status %d, output %q; want %q alone and exit status 1", command, err,
				terminal.ExitStatus(err), out, want)
		}
	}
}

func TestCommandsOfWholeClusterNeedReachableServer(t *testing.T) {
	address := refusedAddress(t)
	expectSentence(t, address, "could not reach the API server "+address+
		": connect: connection refused; see --kubeconfig, --context and --server")
}

func TestCommandsOfWholeClusterNeedValidCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "message": "Unauthorized", "code": 401}`)
	}))
	t.Cleanup(server.Close)
	expectSentence(t, server.URL, "the API server "+server.URL+" does not accept the credentials of the kubeconfig")
}

func TestCommandsOfWholeClusterNeedAnswer(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-request.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	expectSentence(t, server.URL, "did not answer within 200ms (--timeout): nothing was seen", "--timeout=200ms")
}
