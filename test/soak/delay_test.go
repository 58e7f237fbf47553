package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestVolumesAreListedAfterClaims(t *testing.T) {
	const volumes, claims = "/api/v1/persistentvolumes", "/api/v1/persistentvolumeclaims"
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		handler := w.newDelay().wrap(http.NotFoundHandler())
		took := func(path string) time.Duration {
			began := time.Now()
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			return time.Since(began)
		}
		if got := took(volumes); got > 0 {
			t.Errorf("without a restore the list takes %s", got)
		}
		w.delayVolumes()
		go func() {
			sandbox.Pause(t.Context(), time.Minute)
			took(claims)
		}()
		if got := took(volumes + "?watch=1"); got != time.Minute+lateBy {
			t.Errorf("after a restore the volumes come after %s, want three seconds after the claims", got)
		}
		if got := took(volumes+"/one") + took(claims); got > 0 {
			t.Errorf("other reads take %s", got)
		}
		if got := took(volumes); got != lateBy {
			t.Errorf("the next list takes %s, want %s", got, lateBy)
		}
		sandbox.Pause(t.Context(), lateFor)
		if got := took(volumes); got > 0 {
			t.Errorf("later the list takes %s", got)
		}
	})
}
