package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

func TestWrongCommandLineOfWhyIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing named":        {nil, "which object? give it as KIND/NAME, or --all; see exeunt why --help"},
		"all and a name":       {[]string{"pv/x", "--all"}, "--all and --all-namespaces explain all that waits"},
		"all and a file":       {[]string{"-A", "-f", "x"}, "--all and --all-namespaces explain all that waits"},
		"watch of all":         {[]string{"--all", "-w"}, "--watch explains one object, not --all"},
		"age without all":      {[]string{"pv/x", "--older-than=1h"}, "--older-than selects objects of --all"},
		"negative age":         {[]string{"--all", "--older-than=-1s"}, "--older-than must not be negative"},
		"no time":              {[]string{"pv/x", "--timeout=0s"}, "--timeout must be longer than 0"},
		"another format":       {[]string{"pv/x", "-o", "table"}, `--output must be json, yaml, wide, name or be left out, not "table"`},
		"names while watching": {[]string{"pv/x", "-w", "-o", "name"}, "--watch prints reports"},
		"no kubeconfig":        {[]string{"pv/x", "--kubeconfig=/does/not/exist"}, "load kubeconfig"},
		"a context that is gone": {[]string{"pv/x", "--context=moon",
			"--kubeconfig=" + writeKubeconfig(t, "http://127.0.0.1:1")}, `load kubeconfig: context "moon" does not exist`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t.Context(), "exeunt", append([]string{"why"}, tc.args...)...)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || out != "" ||
				terminal.ExitStatus(err) != 1 {
				t.Errorf("error = %v, output %q; want %s in one line, and no output", err, out, tc.want)
			}
		})
	}
}

// writeKubeconfig returns a kubeconfig file for the server.
func writeKubeconfig(t testing.TB, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + server + "\"}}]\n" +
		"contexts: [{name: here, context: {cluster: c}}, {name: there, context: {cluster: c}}]\ncurrent-context: here\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// refusedAddress returns the URL of a port that nobody listens on.
func refusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "http://" + listener.Addr().String()
}

func TestUnreachableServerIsOneSentence(t *testing.T) {
	for _, args := range [][]string{{"pv/x"}, {"--all"}, {"pv/x", "pvc/y"}, {"pv/x", "--watch"}} {
		_, err := execute(t.Context(), "exeunt",
			append([]string{"why", "--kubeconfig", writeKubeconfig(t, refusedAddress(t))}, args...)...)
		if err == nil || !strings.Contains(err.Error(), "onnection refused") || strings.Contains(err.Error(), "\n") ||
			terminal.ExitStatus(err) != 1 {
			t.Errorf("why %v: error = %v, want one sentence and exit status 1", args, err)
		}
	}
}

func TestHangingServerEndsWithSentence(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-request.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	for _, args := range [][]string{{"pv/x"}, {"--all"}, {"-f", "-"}} {
		begin := time.Now()
		_, err := execute(t.Context(), "exeunt",
			append([]string{"why", "--timeout=200ms", "--kubeconfig", writeKubeconfig(t, server.URL)}, args...)...)
		if args[0] == "-f" && err == nil {
			continue // standard input is empty: there is nothing to ask
		}
		if err == nil || !strings.Contains(err.Error(), "did not answer within 200ms (--timeout): nothing was seen") ||
			terminal.ExitStatus(err) != 1 {
			t.Errorf("why %v: error = %v, want a sentence and exit status 1", args, err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("why %v took %v", args, took)
		}
	}
}

func TestSlowInputIsNotTheServersFault(t *testing.T) {
	in, feed := io.Pipe()
	time.AfterFunc(500*time.Millisecond, func() {
		_, _ = io.WriteString(feed, "pv/x\n")
		_ = feed.Close()
	})
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	streams.In = in
	command := newCommand("exeunt", streams)
	command.SetArgs([]string{"why", "-f", "-", "--timeout=300ms", "--kubeconfig", writeKubeconfig(t, refusedAddress(t))})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "onnection refused") {
		t.Errorf("error = %v, want that the server is not reached", err)
	}
}

// slowReader is the terminal of somebody who reads for a while, as through a pager.
type slowReader struct{ pause time.Duration }

func (r slowReader) Write(text []byte) (int, error) {
	<-time.After(r.pause)
	return len(text), nil
}

func TestSlowOutputIsNotTheServersFault(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text := map[string]string{
			"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
			"/apis":   `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
			"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["get"]}]}`,

			"/api/v1/namespaces/default": `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}`,
		}[request.URL.Path]
		if text == "" {
			w.WriteHeader(http.StatusNotFound)
			text = fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "details": {"name": %q}, "code": 404}`, path.Base(request.URL.Path))
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	for _, objects := range [][]string{{"pod/x"}, {"pod/x", "pod/y"}} {
		streams, _, _, _ := genericiooptions.NewTestIOStreams()
		streams.Out = slowReader{2 * time.Second}
		command := newCommand("exeunt", streams)
		command.SetArgs(append([]string{"why", "--timeout=1500ms", "--kubeconfig", writeKubeconfig(t, server.URL)},
			objects...))
		if err := command.ExecuteContext(t.Context()); err != nil {
			t.Errorf("why %v: %v, want that the objects are gone", objects, err)
		}
	}
}

func TestInputThatNeverEndsIsInterrupted(t *testing.T) {
	in, _ := io.Pipe()
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	streams.In = in
	command := newCommand("exeunt", streams)
	command.SetArgs([]string{"why", "-f", "-", "--kubeconfig", writeKubeconfig(t, refusedAddress(t))})
	interrupted := terminal.SignalError{Signal: syscall.SIGINT}
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(interrupted)
	if err := command.ExecuteContext(ctx); !errors.Is(err, interrupted) {
		t.Errorf("error = %v, want %v", err, interrupted)
	}
}

func TestExitCodeIsTheHighest(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		verdict blocker.Verdict
		err     error
		want    int
	}{
		"gone":              {blocker.Gone, nil, 0},
		"none":              {blocker.None, nil, 0},
		"waiting":           {blocker.Waiting, nil, 2},
		"unknown":           {blocker.Unknown, nil, 2},
		"stuck":             {blocker.Stuck, nil, 3},
		"error":             {blocker.Gone, broken, 1},
		"error and waiting": {blocker.Waiting, broken, 2},
		"error and stuck":   {blocker.Stuck, broken, 3},
	} {
		if got := terminal.ExitStatus(outcome(tc.verdict, tc.err)); got != tc.want {
			t.Errorf("%s: exit status %d, want %d", name, got, tc.want)
		}
	}
}

func TestVerdictIsNoErrorMessage(t *testing.T) {
	var out strings.Builder
	terminal.PrintError(&out, "exeunt", outcome(blocker.Stuck, nil))
	if out.String() != "" {
		t.Errorf("printed %q", out.String())
	}
	terminal.PrintError(&out, "exeunt", errors.Join(errors.New("a\x1b[2J"), errors.New("b")))
	if want := "exeunt: a [2J\nexeunt: b\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestReasonsAreExplained(t *testing.T) {
	for _, word := range []string{"DriverRefuses", "driverrefuses"} {
		out, err := execute(t.Context(), "exeunt", "explain", word)
		if err != nil || !strings.HasPrefix(out, "DriverRefuses\n\nMeaning:  ") || !strings.Contains(out, "\nLook at:  ") ||
			!strings.Contains(out, "\nBy force: ") {
			t.Errorf("explain %s = %q, %v", word, out, err)
		}
	}
	out, err := execute(t.Context(), "exeunt", "explain")
	for _, reason := range blocker.Reasons() {
		if err != nil || !strings.Contains(out, "\n"+reason.String()+" ") {
			t.Errorf("%v is missing in %q, %v", reason, out, err)
		}
	}
	for line := range strings.Lines(out) {
		if len(line) > terminal.Columns+1 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if out, err := execute(t.Context(), "exeunt", "explain", "InUse", "-o", "json"); err != nil ||
		!strings.Contains(out, `"reason": "InUse"`) {
		t.Errorf("explain -o json = %q, %v", out, err)
	}
}

func TestEveryKnownFinalizerIsExplained(t *testing.T) {
	for _, family := range families.All() {
		for _, finalizer := range family.Finalizers {
			out, err := execute(t.Context(), "exeunt", "explain", finalizer)
			for _, want := range []string{family.Name + "\n\nSet:      ", "\nRemoved:  by ", "\nAlive:    ", "\nBy force: "} {
				if err != nil || !strings.Contains(out, want) {
					t.Errorf("explain %s: %q is missing in %q, %v", finalizer, want, out, err)
				}
			}
		}
	}
	if out, err := execute(t.Context(), "exeunt", "explain", "kubernetes.io/pv-protection", "-o", "json"); err != nil ||
		!strings.Contains(out, `"project": "Kubernetes"`) {
		t.Errorf("explain -o json = %q, %v", out, err)
	}
	if _, err := execute(t.Context(), "exeunt", "explain", "nobody.example/knows"); err == nil ||
		!strings.Contains(err.Error(), "the finalizer \"nobody.example/knows\" is not known") {
		t.Errorf("an unknown finalizer: %v", err)
	}
}

func TestMisspelledReasonIsSuggested(t *testing.T) {
	for word, want := range map[string]string{
		"driverrefuse": `there is no reason "driverrefuse", did you mean DriverRefuses?`,
		"xyz":          `there is no reason "xyz", exeunt explain lists all`,
	} {
		if _, err := execute(t.Context(), "exeunt", "explain", word); err == nil || err.Error() != want {
			t.Errorf("explain %s: %v, want %s", word, err, want)
		}
	}
}

func TestWordsAreCompleted(t *testing.T) {
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, "http://127.0.0.1:1")
	for name, tc := range map[string]struct{ args, want []string }{
		"reasons":               {[]string{"explain", "driverm"}, []string{"DriverMissing"}},
		"contexts":              {[]string{"why", kubeconfig, "--context", "t"}, []string{"there"}},
		"formats":               {[]string{"why", "-o", ""}, []string{"json", "yaml", "wide", "name"}},
		"formats of the status": {[]string{"status", "-o", ""}, []string{"json", "yaml", "wide"}},
		"formats of the plan":   {[]string{"rollback", "-o", ""}, []string{"json", "yaml"}},
		"nothing":               {[]string{"why", kubeconfig, "pv/x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t.Context(), "exeunt", arguments(completionName, tc.args)...)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if err != nil || !slices.Equal(lines[:len(lines)-1], tc.want) && len(tc.want) > 0 ||
				!strings.HasPrefix(lines[len(lines)-1], ":") {
				t.Errorf("completions are %q, %v, want %q", lines, err, tc.want)
			}
		})
	}
}

func TestPluginHasExamplesOfPlugin(t *testing.T) {
	for _, name := range []string{"why", "explain", "delete", "forecast", "status", "audit", "rollback", "rollback nodes", "teardown"} {
		out, err := execute(t.Context(), pluginName, append(strings.Fields(name), "--help")...)
		if err != nil || !strings.Contains(out, "\n  kubectl exeunt "+name) || strings.Contains(out, "\n  exeunt ") {
			t.Errorf("help of %s: %q, %v", name, out, err)
		}
	}
	out, err := execute(context.Background(), "kubectl-exeunt", "why", "--help")
	if err != nil || !strings.Contains(out, "  kubectl exeunt why pv/pvc-1234") ||
		!strings.Contains(out, "kubectl exeunt why (KIND/NAME") {
		t.Errorf("help = %q, %v", out, err)
	}
	if !strings.Contains(out, "dry run") {
		t.Errorf("help does not say that --probe is a dry run: %s", out)
	}
}

// The definition of a kind in a manifest may be gone: whatever else the manifest names is explained.
func TestFileWithUnservedKindIsExplained(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch request.URL.Path {
		case "/api/v1/namespaces/default":
			_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"default"}}`)
		case "/api/v1/namespaces/default/pods/p":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{"name":"p"}}`)
		default:
			_, _ = io.WriteString(w, resources[request.URL.Path])
		}
	}))
	t.Cleanup(server.Close)
	const widget, pod = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n", "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
	for text, want := range map[string]string{widget + pod: "gone: Pod default/p is gone, or never was\n", widget: ""} {
		file := filepath.Join(t.TempDir(), "app.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := execute(t.Context(), "exeunt", "why", "--kubeconfig", writeKubeconfig(t, server.URL), "-f", file)
		missing := `read ` + file + `: document 1: the API server serves no kind "Widget"; kubectl api-resources lists all`
		if out != want || err == nil || err.Error() != missing || terminal.ExitStatus(err) != 1 {
			t.Errorf("%q: output %q, want %q; error %v, want %s", text, out, want, err, missing)
		}
	}
}

func TestInterruptedWorkHasNoResult(t *testing.T) {
	interrupted := terminal.SignalError{Signal: syscall.SIGINT}
	for name, work := range map[string]func(context.CancelCauseFunc, context.Context) (string, error){
		"work ends with the context": func(interrupt context.CancelCauseFunc, ctx context.Context) (string, error) {
			interrupt(interrupted)
			<-ctx.Done()
			return "part of a result", nil
		},
		"work goes on": func(interrupt context.CancelCauseFunc, _ context.Context) (string, error) {
			interrupt(interrupted)
			<-t.Context().Done()
			return "a late result", nil
		},
	} {
		ctx, interrupt := context.WithCancelCause(t.Context())
		got, err := within(ctx, time.Hour, func() (string, error) { return work(interrupt, ctx) })
		if got != "" || !errors.Is(err, interrupted) {
			t.Errorf("%s: result %q, error %v, want the error %v only", name, got, err, interrupted)
		}
	}
}
