package main

import (
	"net/http"
	"slices"
	"testing"

	"k8s.io/client-go/tools/leaderelection"
)

// http.ServeMux panics for a pattern that it cannot serve.
func TestEveryAcceptedMetricsPathIsServed(t *testing.T) {
	paths, longest := []string{"/healthz", "/healthz/", "/healthz/leader-election", "/metrics", "/debug/pprof",
		"/debug/pprof/"}, []string{"/"}
	for range 4 {
		var longer []string
		for _, path := range longest {
			for _, next := range "/{}.% a$" {
				longer = append(longer, path+string(next))
			}
		}
		paths, longest = append(paths, longest...), longer
	}
	accepted := 0
	for _, path := range append(paths, longest...) {
		options := servingOptions{metricsPath: path}
		if options.check() != nil {
			continue
		}
		accepted++
		if reason := panicOf(path); reason != nil {
			t.Errorf("--metrics-path=%s is accepted, but: %v", path, reason)
		}
	}
	if accepted < 10 || slices.ContainsFunc([]string{"/metrics", "/", "/a/b", "/a.b/", "/debug/pprof/other"},
		func(path string) bool {
			return (&servingOptions{metricsPath: path}).check() != nil
		}) {
		t.Errorf("%d paths are accepted, and some valid paths are refused", accepted)
	}
}

// panicOf returns the panic of serving metrics at the path, nil for none.
func panicOf(path string) (reason any) {
	defer func() { reason = recover() }()
	mux := http.NewServeMux()
	mux.HandleFunc(path, http.NotFound)
	handleHealth(mux, &options{election: electionOptions{enabled: true}}, leaderelection.NewLeaderHealthzAdaptor(0))
	handleProfiles(mux)
	return nil
}
