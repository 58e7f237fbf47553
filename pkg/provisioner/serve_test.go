package provisioner

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	store "github.com/exeunt-io/exeunt/pkg/provisioner/journal"
)

// Programs on v10 have their health check at the port of the metrics.
func TestHandlersOfTheProgramAreServed(t *testing.T) {
	http.HandleFunc("/health-of-the-program", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("healthy")) })
	for _, path := range []string{"/", "/metrics"} {
		c := NewProvisionController(klog.Background(), fake.NewClientset(), "example.com/nfs", &scripted{}, MetricsPath(path))
		if answer := get(c.handler(store.NewMetrics().Collectors()), path); !strings.Contains(answer.Body.String(), "journal") {
			t.Errorf("%s: %d, %q; want metrics", path, answer.Code, answer.Body.String())
		}
	}
	handler := NewProvisionController(klog.Background(), fake.NewClientset(), "example.com/nfs", &scripted{}).handler(store.NewMetrics().Collectors())
	if answer := get(handler, "/health-of-the-program"); answer.Body.String() != "healthy" {
		t.Errorf("%d, %q; want the program's answer", answer.Code, answer.Body.String())
	}
}

func get(handler http.Handler, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer
}
