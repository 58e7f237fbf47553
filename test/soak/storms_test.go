package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestWritesWithoutBackoffAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStorms()
		handler := s.of("program", http.NotFoundHandler())
		send := func(method, path string, count int, pause time.Duration) {
			for range count {
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, nil))
				sandbox.Pause(t.Context(), pause)
			}
		}
		const volume = "/api/v1/persistentvolumes/one"
		send(http.MethodPatch, volume, 4*stormWrites, 500*time.Millisecond)
		send(http.MethodGet, volume, 4*stormWrites, time.Millisecond)
		send(http.MethodPatch, "/apis/coordination.k8s.io/v1/namespaces/ns/leases/journal", 4*stormWrites, time.Millisecond)
		if got, most := s.report(); len(got) > 0 || most != 20 {
			t.Errorf("two writes a second, reads and Leases: %q, at most %d", got, most)
		}
		sandbox.Pause(t.Context(), stormTime)
		send(http.MethodDelete, volume, stormWrites+1, time.Millisecond)
		want := []string{"program writes /api/v1/persistentvolumes/one 31 times in 10s"}
		if got, _ := s.report(); !slices.Equal(got, want) {
			t.Errorf("a storm: %q, want %q", got, want)
		}
	})
}
