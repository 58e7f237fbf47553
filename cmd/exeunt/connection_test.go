package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// ofCluster are commands that read a cluster.
var ofCluster = map[string][]string{
	"why": {"why", "pv/x"}, "status": {"status"}, "rollback": {"rollback"}, "journal": {"journal", "list"},
	"audit": {"audit", "--volumes=/dev/null", "--driver=d"},
}

func TestMissingKubeconfigIsNamed(t *testing.T) {
	missing, empty := filepath.Join(t.TempDir(), "gone"), filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for kubeconfig, want := range map[string]string{missing: missing + " does not exist",
		empty: empty + " names none for its current context"} {
		t.Setenv("KUBECONFIG", kubeconfig)
		for name, args := range ofCluster {
			_, err := execute(t.Context(), "exeunt", args...)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "localhost") ||
				terminal.ExitStatus(err) != exitError {
				t.Errorf("%s with KUBECONFIG=%s: %v, want %q", name, kubeconfig, err, want)
			}
		}
	}
}

func TestFlagsOfConnectionAreListedLast(t *testing.T) {
	for name, args := range ofCluster {
		out, err := execute(t.Context(), "exeunt", append(strings.Fields(strings.Join(args[:min(len(args), 1)], " ")),
			"--help")...)
		own, connection, found := strings.Cut(out, "\nFlags of the connection:\n")
		if err != nil || !found || !strings.Contains(connection, "--as-group") || strings.Contains(own, "--as-group") ||
			strings.Contains(connection, "--output") {
			t.Errorf("%s --help = %s, %v", name, out, err)
		}
		if name == "why" && (!strings.Contains(own, "--namespace") || !strings.Contains(own, "--probe")) {
			t.Errorf("the flags of why are\n%s", own)
		}
	}
	if out, err := execute(t.Context(), "exeunt", "journal", "list", "--help"); err != nil ||
		!strings.Contains(out, "Flags of the connection:") || strings.Contains(out, "Global Flags") {
		t.Errorf("journal list --help = %s, %v", out, err)
	}
}

// "exeunt why --all | head" ends once head has its lines.
func TestClosedOutputIsNoError(t *testing.T) {
	err := fmt.Errorf("print report: %w", &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE})
	var out bytes.Buffer
	terminal.PrintError(&out, "exeunt", err)
	if out.Len() > 0 || terminal.ExitStatus(err) != 141 {
		t.Errorf("printed %q, exit status %d", out.String(), terminal.ExitStatus(err))
	}
	terminal.PrintError(&out, "exeunt", errors.New("broken pipe of a connection"))
	if out.Len() == 0 {
		t.Error("another error is not printed")
	}
}

// clusterWithoutObjects returns an API server that has the namespace shop, and nothing else.
func clusterWithoutObjects(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		notFound := func(kind, name string) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found","details":{"kind":%q,"name":%q}}`, kind, name)
		}
		switch path := request.URL.Path; {
		case path == "/api":
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case path == "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case path == "/api/v1":
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[
				{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","delete"]},
				{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["get","list","delete"]}]}`)
		case path == "/api/v1/namespaces/shop":
			_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop","uid":"1"}}`)
		case strings.HasSuffix(path, "/pods"):
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		case strings.Contains(path, "/pods/"):
			notFound("pods", path[strings.LastIndex(path, "/")+1:])
		default:
			notFound("namespaces", path[strings.LastIndex(path, "/")+1:])
		}
	}))
	t.Cleanup(server.Close)
	return writeKubeconfig(t, server.URL)
}

func TestMissingNamespaceIsAnError(t *testing.T) {
	kubeconfig := "--kubeconfig=" + clusterWithoutObjects(t)
	for _, args := range [][]string{{"why", "pod/db-0"}, {"why", "pod/db-0", "pod/db-1"}, {"why", "--all"}} {
		if _, err := execute(t.Context(), "exeunt", append(args, "-n", "shp", kubeconfig)...); err == nil ||
			!strings.Contains(err.Error(), `there is no namespace "shp"`) || terminal.ExitStatus(err) != exitError {
			t.Errorf("%v in a missing namespace: %v", args, err)
		}
		if out, err := execute(t.Context(), "exeunt", append(args, "-n", "shop", kubeconfig)...); err != nil ||
			!strings.Contains(out, "gone, or never was") && !strings.Contains(out, "nothing waits") {
			t.Errorf("%v in a namespace: %q, %v", args, out, err)
		}
	}
}

func TestPipedOutputEndsQuietly(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = reader.Close()
	command := newCommand("exeunt", genericiooptions.IOStreams{Out: writer, ErrOut: io.Discard})
	command.SetArgs([]string{"explain"})
	if err := command.ExecuteContext(context.Background()); !terminal.IsClosedOutput(err) {
		t.Errorf("explain to a closed pipe: %v", err)
	}
}
