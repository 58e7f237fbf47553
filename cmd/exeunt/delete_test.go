package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

func TestGracePeriodIsThatOfKubectl(t *testing.T) {
	const none = -1
	for name, tc := range map[string]struct {
		flags deleteFlags
		want  int64
		err   string
	}{
		"nothing":            {deleteFlags{grace: -1}, none, ""},
		"negative":           {deleteFlags{grace: -5}, none, ""},
		"grace":              {deleteFlags{grace: 300}, 300, ""},
		"0 without force":    {deleteFlags{grace: 0}, 1, ""},
		"force alone":        {deleteFlags{grace: -1, force: true}, 0, ""},
		"force and 0":        {deleteFlags{grace: 0, force: true}, 0, ""},
		"now":                {deleteFlags{grace: -1, now: true}, 1, ""},
		"force and grace":    {deleteFlags{grace: 1, force: true}, 0, "--force and --grace-period greater than 0 cannot be specified together"},
		"now and grace":      {deleteFlags{grace: 0, now: true}, 0, "--now and --grace-period cannot be specified together"},
		"now and force":      {deleteFlags{grace: -1, now: true, force: true}, 0, "--now and --force cannot be specified together"},
		"a negative timeout": {deleteFlags{grace: -1, timeout: -1}, 0, "--timeout must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.flags.seconds()
			switch {
			case tc.err != "":
				if err == nil || err.Error() != tc.err {
					t.Errorf("error %v, want %s", err, tc.err)
				}
			case err != nil, (got == nil) != (tc.want == none), got != nil && *got != tc.want:
				t.Errorf("%v, error %v, want %d", got, err, tc.want)
			}
		})
	}
}

// resources are what the API server of the tests serves.
var resources = map[string]string{
	"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis":   `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
	"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["get"]}]}`,

	"/version": `{"gitVersion": "v1.36.3"}`,
}

func TestBuiltInKindIsLeftToKubectl(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodGet {
			t.Errorf("sent %s %s", request.Method, request.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		if resources[request.URL.Path] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, resources[request.URL.Path])
	}))
	t.Cleanup(server.Close)
	kubeconfig := writeKubeconfig(t, server.URL)
	for words, want := range map[string]string{
		"pod/a -n shop": `pod "a" is of a built-in kind, not a custom resource: use kubectl delete pods a -n shop --kubeconfig ` +
			kubeconfig + "; nothing was deleted",
		"machine/a":  `the API server serves no kind "machine"; kubectl api-resources lists all`,
		"pods":       "which pods? give its name, as in pods/NAME",
		"pod/a pods": "name all objects as KIND/NAME, or give one KIND and its NAMEs: the two forms do not mix",
		"":           "which object? give it as KIND/NAME; see exeunt delete --help",
	} {
		args := append([]string{"delete", "--grace-period=5", "--kubeconfig", kubeconfig}, strings.Fields(words)...)
		out, err := execute(t.Context(), "exeunt", args...)
		if err == nil || err.Error() != want || out != "" || terminal.ExitStatus(err) != 1 {
			t.Errorf("delete %s: %q, error %v, want %s", words, out, err, want)
		}
	}
}

// machinesOf answers requests for machines of these names, which have a finalizer and are deleted by a DELETE. There are
// no other ones.
func machinesOf(t *testing.T, names ...string) http.HandlerFunc {
	var deleted sync.Map
	served := maps.Clone(resources)
	served["/apis"] = `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "example.com",
		"versions": [{"groupVersion": "example.com/v1", "version": "v1"}],
		"preferredVersion": {"groupVersion": "example.com/v1", "version": "v1"}}]}`
	served["/apis/example.com/v1"] = `{"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": [{"name": "machines",
		"singularName": "machine", "kind": "Machine", "namespaced": true, "verbs": ["get", "delete", "patch", "watch"]}]}`
	return func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name, object := strings.CutPrefix(request.URL.Path, "/apis/example.com/v1/namespaces/default/machines/")
		switch {
		case request.URL.Query().Has("watch"):
			t.Error("the end of the machine is awaited")
			w.WriteHeader(http.StatusForbidden)
		case !object:
			_, _ = io.WriteString(w, served[request.URL.Path])
		case !slices.Contains(names, name):
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "details": {"name": %q}}`, name)
		default:
			if request.Method == http.MethodDelete {
				deleted.Store(name, `, "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 0`)
			}
			fields, has := deleted.Load(name)
			if !has {
				fields = ""
			}
			_, _ = fmt.Fprintf(w, `{"apiVersion": "example.com/v1", "kind": "Machine", "metadata": {"name": %q, "namespace": "default",
				"uid": "u", "resourceVersion": "1", "finalizers": ["example.com/f"]%s}}`, name, fields)
		}
	}
}

// A wait may last for hours: as with kubectl, an error is printed at once.
func TestErrorDoesNotWaitForOtherObjects(t *testing.T) {
	server := httptest.NewServer(machinesOf(t, "a"))
	t.Cleanup(server.Close)
	out, err := execute(t.Context(), "exeunt", "delete", "machine", "a", "b", "-n", "default", "--kubeconfig",
		writeKubeconfig(t, server.URL))
	if want := `there is no machine.example.com "b" in namespace default`; err == nil || err.Error() != want ||
		out != "machine.example.com \"a\" deleted, without a grace period\n" {
		t.Errorf("%q, error %v, want %s", out, err, want)
	}
}

// One machine cannot be watched, another one stays for ever.
func TestErrorOfWaitDoesNotWaitForOtherObjects(t *testing.T) {
	machines := machinesOf(t, "a", "b")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		switch {
		case !query.Has("watch"):
			machines(w, request)
		case query.Get("fieldSelector") == "metadata.name=a":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403}`)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			<-request.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, names := range [][]string{{"a", "b"}, {"b", "a"}} {
		_, err := execute(ctx, "exeunt", append([]string{"delete", "machine", "-n", "default", "--kubeconfig",
			writeKubeconfig(t, server.URL)}, names...)...)
		if want := `wait until machine.example.com "a" is gone: no right to watch machines`; err == nil || ctx.Err() != nil ||
			!strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: error %v, want %s", names, err, want)
		}
	}
}

// Each wait has a watch, and each watch of a kind sees every event of the kind.
func TestFewObjectsAreWatchedAtOnce(t *testing.T) {
	var names []string
	for i := range mostWaits + 20 {
		names = append(names, fmt.Sprint("m-", i))
	}
	var watched sync.Map
	machines := machinesOf(t, names...)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !request.URL.Query().Has("watch") {
			machines(w, request)
			return
		}
		watched.Store(request.URL.Query().Get("fieldSelector"), true)
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-request.Context().Done()
	}))
	t.Cleanup(server.Close)
	_, err := execute(t.Context(), "exeunt", append([]string{"delete", "machine", "-n", "default", "--timeout=1s", "--kubeconfig",
		writeKubeconfig(t, server.URL)}, names...)...)
	count := 0
	watched.Range(func(any, any) bool { count++; return true })
	if count == 0 || count > mostWaits || err == nil || strings.Count(err.Error(), "given up after 1s (--timeout)") != len(names) {
		t.Errorf("%d watches, error %v", count, err)
	}
}

// Ctrl-C ends the wait, and no deletion.
func TestInterruptedWaitSaysThatDeletionGoesOn(t *testing.T) {
	machines := machinesOf(t, "a", "b")
	ctx, interrupt := context.WithCancelCause(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if !request.URL.Query().Has("watch") {
			machines(w, request)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		interrupt(terminal.SignalError{Signal: syscall.SIGINT})
		<-request.Context().Done()
	}))
	t.Cleanup(server.Close)
	_, err := execute(ctx, "exeunt", "delete", "machine", "a", "b", "-n", "default", "--kubeconfig", writeKubeconfig(t, server.URL))
	if want := `ended by signal "interrupt": what is deleted ends without this command`; err == nil || err.Error() != want ||
		terminal.ExitStatus(err) != 128+int(syscall.SIGINT) {
		t.Errorf("error %v, want %s", err, want)
	}
}
