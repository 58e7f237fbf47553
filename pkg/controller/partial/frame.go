package partial

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Numbers of the fields of a watch event.
var (
	eventTypeField   = PathOf(metav1.WatchEvent{}, "type")[0]
	eventObjectField = PathOf(metav1.WatchEvent{}, "object")[0]
	eventRawField    = PathOf(runtime.RawExtension{}, "raw")[0]
)

// FrameDecoder decodes watch events. It leaves the encoded object in the frame instead of copying it: the next
// frame overwrites it, after client-go has decoded it. The given serializer decodes everything else.
func FrameDecoder(whole runtime.Serializer) runtime.Serializer { return frameDecoder{whole} }

type frameDecoder struct{ runtime.Serializer }

// Decode decodes a frame.
func (f frameDecoder) Decode(frame []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, is := into.(*metav1.WatchEvent); is {
		if kind, raw, ok := openEvent(frame); ok {
			event.Type, event.Object = kind, runtime.RawExtension{Raw: raw}
			return event, new(metav1.SchemeGroupVersion.WithKind("WatchEvent")), nil
		}
	}
	return f.Serializer.Decode(frame, defaults, into)
}

// openEvent returns the type of a watch event and its encoded object. It returns false for anything unusual.
func openEvent(frame []byte) (kind string, raw []byte, ok bool) {
	kindText, object, ok := twoFields(frame, eventTypeField, eventObjectField)
	if !ok {
		return "", nil, false
	}
	raw, _, ok = twoFields(object, eventRawField, 0)
	return eventType(kindText), raw, ok && len(raw) > 0
}

// eventType returns the type of an event; the usual ones take no memory.
func eventType(text []byte) string {
	switch watch.EventType(text) {
	case watch.Added:
		return string(watch.Added)
	case watch.Modified:
		return string(watch.Modified)
	case watch.Deleted:
		return string(watch.Deleted)
	case watch.Bookmark:
		return string(watch.Bookmark)
	case watch.Error:
		return string(watch.Error)
	}
	return string(text)
}
