package waiting

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// Sink writes events, and remembers the namespaces whose events the API server refuses
// because the namespace is being deleted. It is safe for concurrent use.
type Sink struct {
	record.EventSink
	clock clock.PassiveClock

	mu sync.Mutex
	// refused has the time of the last refused event by namespace.
	refused map[string]time.Time
}

// NewSink returns a sink that writes events with the client.
func NewSink(client kubernetes.Interface, clock clock.PassiveClock) *Sink {
	events := &corev1.EventSinkImpl{Interface: client.CoreV1().Events(v1.NamespaceAll)}
	return &Sink{EventSink: events, clock: clock, refused: map[string]time.Time{}}
}

// Create creates the event.
func (s *Sink) Create(event *v1.Event) (*v1.Event, error) {
	created, err := s.EventSink.Create(event)
	if apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause) {
		s.noteRefusal(event.Namespace)
	}
	return created, err
}

// noteRefusal remembers the namespace, and forgets namespaces that refused long ago.
func (s *Sink) noteRefusal(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	for other, at := range s.refused {
		if now.Sub(at) >= blocker.EventInterval {
			delete(s.refused, other)
		}
	}
	s.refused[namespace] = now
}

// Refuses reports whether the namespace refused an event within the interval between two
// events. A namespace that is created again takes events later.
func (s *Sink) Refuses(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, refused := s.refused[namespace]
	return refused && s.clock.Since(at) < blocker.EventInterval
}
