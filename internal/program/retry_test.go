package program

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
)

// client-go repeats a write after a status of 500 or more with Retry-After, and returns the last
// answer alone: a refusal of the repetition hides that the first write may still take effect.
func TestRefusedRepetitionProvesNothingAboutAnOpenWrite(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 { // a load balancer whose API server has not answered in time
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	options, err := NewOptions(nil)
	if err != nil {
		t.Fatal(err)
	}
	options.Master = server.URL
	clients, err := options.Clients("program")
	if err != nil {
		t.Fatal(err)
	}
	_, err = clients.Objects.CoreV1().PersistentVolumes().Create(t.Context(),
		&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}, metav1.CreateOptions{})
	if answer.IsDefinite(err) {
		t.Errorf("after %d requests the error %v counts as a proof that no request took effect", requests.Load(), err)
	}
}
