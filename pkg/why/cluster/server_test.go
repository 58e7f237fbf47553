package cluster_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

func TestVersionIsThatOfServer(t *testing.T) {
	for body, want := range map[string]string{
		`{"gitVersion":"v1.36.3+exeunt.0.1.0"}`: "v1.36.3+exeunt.0.1.0",
		`{}`:                                    "",
		`<html>`:                                "",
	} {
		reader := clustertest.NewReader(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		if got, err := reader.Version(t.Context()); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: version %q, error %v", body, got, err)
		}
	}
}

func TestTimeOfServerIsUnknownBeforeItsFirstDate(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, dated := range []bool{true, false} {
		reader := clustertest.NewReader(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = nil
			if dated {
				w.Header().Set("Date", at.Format(http.TimeFormat))
			}
			_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
		})
		if _, known := reader.ServerTime(); known {
			t.Error("known before a request")
		}
		if _, err := reader.Version(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now, known := reader.ServerTime(); known != dated || dated && now.Sub(at).Abs() > time.Minute {
			t.Errorf("with Date %t: %v, known %t", dated, now, known)
		}
	}
}
