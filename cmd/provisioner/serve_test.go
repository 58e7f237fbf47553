package main

import (
	"net/http"
	"slices"
	"testing"

	"k8s.io/client-go/tools/leaderelection"
)

// Every path of up to five of these characters that the flag takes can be served
// beside everything else; http.ServeMux panics over what it cannot.
func TestEveryPathOfMetricsThatIsTakenCanBeServedBesideHealthAndProfiles(t *testing.T) {
	paths, longest := []string{"/healthz", "/healthz/", "/healthz/leader-election", "/metrics", "/debug/pprof", "/debug/pprof/"}, []string{"/"}
	for range 4 {
		var longer []string
		for _, path := range longest {
			for _, next := range "/{}.% a$" {
				longer = append(longer, path+string(next))
			}
		}
		paths, longest = append(paths, longest...), longer
	}
	taken := 0
	for _, path := range append(paths, longest...) {
		options := servingOptions{metricsPath: path}
		if options.check() != nil {
			continue
		}
		taken++
		if reason := panicOf(path); reason != nil {
			t.Errorf("--metrics-path=%s is taken, and then: %v", path, reason)
		}
	}
	if taken < 10 || slices.ContainsFunc([]string{"/metrics", "/", "/a/b", "/a.b/", "/debug/pprof/other"}, func(path string) bool {
		return (&servingOptions{metricsPath: path}).check() != nil
	}) {
		t.Errorf("%d paths are taken, and some that could be served are not", taken)
	}
}

func panicOf(path string) (reason any) {
	defer func() { reason = recover() }()
	mux := http.NewServeMux()
	mux.HandleFunc(path, http.NotFound)
	handleHealth(mux, &options{election: electionOptions{enabled: true}}, leaderelection.NewLeaderHealthzAdaptor(0))
	handleProfiles(mux)
	return nil
}
