package boundpairs

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// message is an API object in the encoding of the API server.
type message interface {
	controller.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// decode returns the object as a client decodes it: it shares no string with another one.
func decode[T message](object T, into T) T {
	encoded, err := object.Marshal()
	if err == nil {
		err = into.Unmarshal(encoded)
	}
	if err != nil {
		panic(fmt.Sprintf("encode and decode %s: %v", object.GetName(), err))
	}
	return into
}

// DecodedClaim returns the claim of a pair as a client decodes it.
func DecodedClaim(number int, driver string) *v1.PersistentVolumeClaim {
	return decode(Claim(number, driver), &v1.PersistentVolumeClaim{})
}

// DecodedVolume returns the volume of a pair as a client decodes it.
func DecodedVolume(number int, driver string) *v1.PersistentVolume {
	return decode(Volume(number, driver), &v1.PersistentVolume{})
}

// DecodedPod returns the pod of a pair as a client decodes it.
func DecodedPod(number int) *v1.Pod { return decode(Pod(number), &v1.Pod{}) }

// Claims streams the claims of that many pairs to an informer. driver returns the CSI
// driver of a pair.
func Claims(pairs int, driver func(number int) string) cache.ListerWatcher {
	return stream(pairs, &v1.PersistentVolumeClaim{},
		func(number int) runtime.Object { return DecodedClaim(number, driver(number)) })
}

// Volumes streams the volumes of that many pairs to an informer.
func Volumes(pairs int, driver func(number int) string) cache.ListerWatcher {
	return stream(pairs, &v1.PersistentVolume{},
		func(number int) runtime.Object { return DecodedVolume(number, driver(number)) })
}

// None streams no objects to an informer of the type.
func None(empty controller.Object) cache.ListerWatcher {
	return stream(0, empty, nil)
}

// stream returns a source that sends the objects as the first events of a watch.
func stream(pairs int, bookmark controller.Object, object func(number int) runtime.Object) cache.ListerWatcher {
	bookmark.SetResourceVersion("9000000")
	bookmark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return &cache.ListWatch{
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			s := &source{events: make(chan watch.Event), stopped: make(chan struct{})}
			go func() {
				for number := range pairs {
					if !s.send(watch.Event{Type: watch.Added, Object: object(number)}) {
						return
					}
				}
				s.send(watch.Event{Type: watch.Bookmark, Object: bookmark})
			}()
			return s, nil
		},
	}
}

// source is a watch that ends when it is stopped.
type source struct {
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

func (s *source) send(event watch.Event) bool {
	select {
	case s.events <- event:
		return true
	case <-s.stopped:
		return false
	}
}

// Stop ends the watch.
func (s *source) Stop() { s.once.Do(func() { close(s.stopped) }) }

// ResultChan returns the events.
func (s *source) ResultChan() <-chan watch.Event { return s.events }
