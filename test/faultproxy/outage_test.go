package faultproxy

import (
	"errors"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"
)

func TestOutageRefusesConnectionsForAWhile(t *testing.T) {
	w := newWorld(t, nil, stream(jsonLines, nil, nil))
	body := w.startWatch()
	w.proxy.Outage(time.Hour)
	w.proxy.Outage(0) // adds nothing
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the watch ended without an error")
	}
	if _, err := w.do(http.MethodGet, claim, ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("during the outage: %v", err)
	}
}

func TestOutageEnds(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.proxy.Outage(time.Millisecond)
	w.until("the API server is back", func() bool {
		got, err := w.do(http.MethodGet, claim, "")
		return err == nil && string(got.body) == "done"
	})
}

func TestDisconnectCutsAllRequests(t *testing.T) {
	watching := stream(jsonLines, nil, nil)
	w := newWorld(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			watching(w, r)
		}
	})
	body := w.startWatch()
	w.proxy.SetRates(Rates{Faults: map[Kind]float64{Disconnect: 1}})
	if _, err := w.do(http.MethodPost, claims, object); err == nil {
		t.Error("the request was answered")
	}
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the watch ended without an error")
	}
	w.proxy.SetRates(Rates{})
	if _, err := w.do(http.MethodGet, claim, ""); err != nil {
		t.Errorf("with a new connection: %v", err)
	}
}

func TestCloseEndsOutageAndRequests(t *testing.T) {
	w := newWorld(t, nil, stream(jsonLines, nil, nil))
	body := w.startWatch()
	w.proxy.Outage(time.Millisecond)
	if err := w.proxy.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(body); err == nil {
		t.Error("the watch ended without an error")
	}
	if _, err := w.do(http.MethodGet, claim, ""); err == nil {
		t.Error("a closed proxy answered")
	}
}
