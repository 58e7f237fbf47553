package harness

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// AwaitEvent waits for an event with the reason about the object, and returns its
// message.
func (s *Session) AwaitEvent(object metav1.Object, reason string) string {
	s.T.Helper()
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	selector := fields.AndSelectors(fields.OneTermEqualSelector("involvedObject.name", object.GetName()),
		fields.OneTermEqualSelector("reason", reason))
	source := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "events", namespace, selector)
	event, err := watchtools.UntilWithSync(s.Ctx, source, &v1.Event{}, nil,
		func(e watch.Event) (bool, error) { return e.Type != watch.Deleted, nil })
	if err != nil {
		s.T.Fatalf("waiting for event %s about %s: %v", reason, object.GetName(), err)
	}
	return event.Object.(*v1.Event).Message
}

// EventLog collects events.
type EventLog struct {
	events <-chan *v1.Event
}

// WatchEvents collects the events with the reason in the test's namespace, repetitions
// included.
func (s *Session) WatchEvents(reason string) *EventLog {
	s.T.Helper()
	events := make(chan *v1.Event, 100)
	source := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "events", s.Namespace, reasonIs(reason))
	informer := cache.NewSharedInformer(source, &v1.Event{}, 0)
	note := func(object any) {
		if event, ok := object.(*v1.Event); ok {
			events <- event
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note,
		UpdateFunc: func(_, now any) { note(now) }})
	s.Must(err, "watch events")
	go informer.RunWithContext(s.Ctx)
	if !cache.WaitForCacheSync(s.Ctx.Done(), informer.HasSynced) {
		s.T.Fatal("watch events: the informer did not sync")
	}
	return &EventLog{events: events}
}

// Await waits for an event about the object whose message has the text.
func (l *EventLog) Await(s *Session, object, text string) {
	s.T.Helper()
	for {
		select {
		case event := <-l.events:
			if event.InvolvedObject.Name == object && strings.Contains(event.Message, text) {
				return
			}
		case <-s.Ctx.Done():
			s.T.Fatalf("waiting for an event about %s with %q: %v", object, text, s.Ctx.Err())
		}
	}
}

func reasonIs(reason string) fields.Selector {
	return fields.OneTermEqualSelector("reason", reason)
}

// AllEvents returns all events of the cluster as JSON.
func (s *Session) AllEvents() string {
	s.T.Helper()
	events, err := s.Client.CoreV1().Events(metav1.NamespaceAll).List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list events")
	return AsText(s.T, events)
}

// AsText returns the object as JSON.
func AsText(t testing.TB, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
