package main

import (
	"io"
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
