package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// delayed sends lists of volumes through the delay of a program.
type delayed struct {
	t *testing.T
	*world
	handler http.Handler
}

func newDelayed(t *testing.T) *delayed {
	w := &world{}
	return &delayed{t, w, w.newDelay().wrap(http.NotFoundHandler())}
}

// took returns how long a read takes.
func (d *delayed) took(path string) time.Duration {
	began := time.Now()
	d.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(d.t.Context(), http.MethodGet, path, nil))
	return time.Since(began)
}

// answer has the API server answer a read.
func (d *delayed) answer(path string, code int) {
	response := &http.Response{StatusCode: code,
		Request: httptest.NewRequestWithContext(d.t.Context(), http.MethodGet, path, nil)}
	if err := d.delays[0].answered(response); err != nil {
		d.t.Error(err)
	}
}

const volumesPath, claimsPath = "/api/v1/persistentvolumes", "/api/v1/persistentvolumeclaims"

func TestVolumesAreListedAfterClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelayed(t)
		d.answer(claimsPath, http.StatusOK)
		if got := d.took(volumesPath); got > 0 {
			t.Errorf("without a restore the list takes %s", got)
		}
		d.delayVolumes()
		go func() {
			sandbox.Pause(t.Context(), 10*time.Second)
			d.answer(claimsPath, http.StatusGone)
			d.answer(claimsPath+"?watch=1", http.StatusOK)
			sandbox.Pause(t.Context(), 10*time.Second)
			d.answer(claimsPath+"?watch=1&sendInitialEvents=true", http.StatusOK)
		}()
		if got := d.took(volumesPath + "?watch=1"); got != 20*time.Second+lateBy {
			t.Errorf("after a restore the volumes come after %s, want three seconds after the list of claims", got)
		}
		if got := d.took(volumesPath+"/one") + d.took(claimsPath); got > 0 {
			t.Errorf("other reads take %s", got)
		}
		sandbox.Pause(t.Context(), lateFor)
		if got := d.took(volumesPath); got > 0 {
			t.Errorf("later the list takes %s", got)
		}
	})
}

func TestVolumesAreNotLateForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDelayed(t)
		d.delayVolumes()
		if got := d.took(volumesPath); got != lateFor {
			t.Errorf("without a list of claims the volumes come after %s, want %s", got, lateFor)
		}
		sandbox.Pause(t.Context(), lateFor)
		if got := d.took(volumesPath); got > 0 {
			t.Errorf("later the list takes %s", got)
		}
	})
}
