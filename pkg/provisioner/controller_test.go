package provisioner

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

// Programs on v10 have their health check at the port of the metrics.
func TestHandlersOfTheProgramAreServed(t *testing.T) {
	http.HandleFunc("/health-of-the-program", func(w http.ResponseWriter,
		_ *http.Request) {
		_, _ = w.Write([]byte("healthy"))
	})
	for _, path := range []string{"/", "/metrics"} {
		c := NewProvisionController(klog.Background(), fake.NewClientset(), "example.com/nfs", &scripted{}, MetricsPath(path))
		if answer := get(c.handler(journalstore.NewMetrics().Collectors()), path); !strings.Contains(answer.Body.String(),
			"journal") {
			t.Errorf("%s: %d, %q; want metrics", path, answer.Code, answer.Body.String())
		}
	}
	handler := NewProvisionController(klog.Background(), fake.NewClientset(), "example.com/nfs", &scripted{}).
		handler(journalstore.NewMetrics().Collectors())
	if answer := get(handler, "/health-of-the-program"); answer.Body.String() != "healthy" {
		t.Errorf("%d, %q; want the program's answer", answer.Code, answer.Body.String())
	}
}

// Another replica on the node has the port, until it ends.
func TestBusyPortIsServedOnceItIsFree(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := busy.Addr().(*net.TCPAddr)
	c := NewProvisionController(klog.Background(), fake.NewClientset(), "example.com/nfs", &scripted{},
		MetricsAddress("127.0.0.1"), MetricsPort(int32(address.Port)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.serve(ctx, nil, time.Millisecond)
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		response, err := http.Get("http://" + address.String() + "/metrics")
		if err != nil {
			continue // until the test times out
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
	}
}

func get(handler http.Handler, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer
}
