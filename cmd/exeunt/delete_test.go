package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
	for words, want := range map[string]string{
		"pod/a":      `pod "a" is of a built-in kind, not a custom resource: use kubectl delete pods a; nothing was deleted`,
		"machine/a":  `the API server serves no kind "machine"; kubectl api-resources lists all`,
		"pods":       "which pods? give its name, as in pods/NAME",
		"pod/a pods": "name all objects as KIND/NAME, or give one KIND and its NAMEs: the two forms do not mix",
		"":           "which object? give it as KIND/NAME; see exeunt delete --help",
	} {
		args := append([]string{"delete", "--grace-period=5", "--kubeconfig", writeKubeconfig(t, server.URL)},
			strings.Fields(words)...)
		out, err := execute(t.Context(), "exeunt", args...)
		if err == nil || err.Error() != want || out != "" || terminal.ExitStatus(err) != 1 {
			t.Errorf("delete %s: %q, error %v, want %s", words, out, err, want)
		}
	}
}

// machineOf answers requests for the machine a, which has a finalizer and is deleted by a DELETE. There is no other one.
func machineOf(t *testing.T) http.HandlerFunc {
	deleted := ""
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
		case name != "a":
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "details": {"name": %q}}`, name)
		default:
			if request.Method == http.MethodDelete {
				deleted = `, "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 0`
			}
			_, _ = fmt.Fprintf(w, `{"apiVersion": "example.com/v1", "kind": "Machine", "metadata": {"name": "a", "namespace": "default",
				"uid": "u", "resourceVersion": "1", "finalizers": ["example.com/f"]%s}}`, deleted)
		}
	}
}

// A wait may last for hours: as with kubectl, an error is printed at once.
func TestErrorDoesNotWaitForOtherObjects(t *testing.T) {
	server := httptest.NewServer(machineOf(t))
	t.Cleanup(server.Close)
	out, err := execute(t.Context(), "exeunt", "delete", "machine", "a", "b", "-n", "default", "--kubeconfig",
		writeKubeconfig(t, server.URL))
	if want := `there is no machine.example.com "b" in namespace default`; err == nil || err.Error() != want ||
		out != "machine.example.com \"a\" deleted, without a grace period\n" {
		t.Errorf("%q, error %v, want %s", out, err, want)
	}
}
