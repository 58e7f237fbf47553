package faultproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
)

// watchClaims is a watch from version 7.
const watchClaims = claims + "?watch=true&resourceVersion=7"

var formats = []format{jsonLines, protobufFrames}

// frameOf returns the event of a claim as the API server encodes it.
func frameOf(t *testing.T, f format, kind watch.EventType, version int) []byte {
	t.Helper()
	object := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: fmt.Sprint(version)}}
	media, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), string(f))
	encoded, err := runtime.Encode(scheme.Codecs.EncoderForVersion(media.Serializer, v1.SchemeGroupVersion), object)
	if err != nil {
		t.Fatal(err)
	}
	if f == jsonLines {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", kind, bytes.TrimSpace(encoded))
	}
	body, err := (&metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: encoded}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// stream answers a watch with the frames, and then with those of more, until the program
// ends the watch or more is closed.
func stream(f format, first [][]byte, more <-chan []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", string(f)+";stream=watch")
		flush := http.NewResponseController(w).Flush
		for _, frame := range first {
			_, _ = w.Write(frame)
		}
		for _ = flush(); ; _ = flush() {
			select {
			case frame, open := <-more:
				if !open {
					return
				}
				_, _ = w.Write(frame)
			case <-r.Context().Done():
				return
			}
		}
	}
}

// startWatch returns the stream of a watch.
func (w *world) startWatch() io.ReadCloser {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+watchClaims, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { response.Body.Close() })
	return response.Body
}

// until waits until the condition holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			w.t.Fatalf("waiting until %s", what)
		}
	}
}

func TestWatchPassesUnchanged(t *testing.T) {
	for _, f := range append(formats, "application/cbor-seq") {
		t.Run(string(f), func(t *testing.T) {
			more := make(chan []byte)
			close(more)
			frames := [][]byte{[]byte("anything\nat all")}
			if f != "application/cbor-seq" {
				frames = [][]byte{frameOf(t, f, watch.Added, 8), frameOf(t, f, watch.Modified, 9)}
			}
			w := newWorld(t, nil, stream(f, frames, more))
			got, err := io.ReadAll(w.startWatch())
			if want := bytes.Join(frames, nil); err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestDroppedWatchEndsBetweenEvents(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			first := frameOf(t, f, watch.Added, 8)
			w := newWorld(t, nil, stream(f, [][]byte{first}, nil))
			body := w.startWatch()
			got := make([]byte, len(first))
			if _, err := io.ReadFull(body, got); err != nil || !bytes.Equal(got, first) {
				t.Fatalf("got %q, %v", got, err)
			}
			w.proxy.SetRates(Rates{Faults: map[Kind]float64{WatchDrop: 1}})
			if rest, err := io.ReadAll(body); len(rest) > 0 || err != nil {
				t.Errorf("then %q, %v", rest, err)
			}
			w.expectOnly(WatchDrop)
		})
	}
}

func TestCutWatchEndsWithinAnEvent(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			more, next := make(chan []byte), frameOf(t, f, watch.Added, 8)
			w := newWorld(t, map[Kind]float64{WatchCut: 1}, stream(f, nil, more))
			go func() {
				for {
					select {
					case more <- next:
					case <-t.Context().Done():
						return
					}
				}
			}()
			got, err := io.ReadAll(w.startWatch())
			last := got[len(got)/len(next)*len(next):]
			if err == nil || len(last) == 0 || !bytes.HasPrefix(next, last) {
				t.Errorf("the stream ended with %q, %v", last, err)
			}
			w.expectOnly(WatchCut)
		})
	}
}

func TestStalledWatchCatchesUp(t *testing.T) {
	more := make(chan []byte)
	w := newWorld(t, map[Kind]float64{WatchStall: 1}, stream(jsonLines, nil, more))
	body := w.startWatch()
	w.until("the watch stalls", func() bool { return w.proxy.Stats()[WatchStall] > 0 })
	var frames [][]byte
	for version := range 50 {
		frames = append(frames, frameOf(t, jsonLines, watch.Modified, version))
	}
	go func() {
		defer close(more)
		for _, frame := range frames {
			more <- frame
		}
	}()
	want := bytes.Join(frames, nil)
	if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestExpiredWatchEndsWithStatus(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			w := newWorld(t, map[Kind]float64{WatchExpired: 1}, stream(f, nil, nil))
			client := w.clientset(f)
			watching, err := client.CoreV1().PersistentVolumeClaims("n").
				Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
			if err != nil {
				t.Fatal(err)
			}
			event := <-watching.ResultChan()
			if err := apierrors.FromObject(event.Object); event.Type != watch.Error || !apierrors.IsResourceExpired(err) {
				t.Errorf("got %v, %v", event, err)
			}
			if event, open := <-watching.ResultChan(); open {
				t.Errorf("then %v", event)
			}
			w.expectOnly(WatchExpired)
		})
	}
}

// clientset returns a client of the program in this format.
func (w *world) clientset(f format) kubernetes.Interface {
	w.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	config.ContentType, config.QPS = string(f), -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

func TestPauseStopsOpenWatch(t *testing.T) {
	more := make(chan []byte)
	w := newWorld(t, nil, stream(jsonLines, nil, more))
	body := w.startWatch()
	w.proxy.Pause()
	more <- frameOf(t, jsonLines, watch.Added, 8)
	read := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(body, make([]byte, 1))
		read <- err
	}()
	select {
	case err := <-read:
		t.Fatalf("an event passed during the pause: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	w.proxy.Resume()
	if err := <-read; err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

func TestLostServerCutsWatch(t *testing.T) {
	frame := frameOf(t, protobufFrames, watch.Added, 8)
	w := newWorld(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", string(protobufFrames))
		// A whole event first: without one, the stream may end before the proxy has sent the header.
		_, _ = w.Write(append(bytes.Clone(frame), frame[:len(frame)-1]...))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	got, err := io.ReadAll(w.startWatch())
	rest, whole := bytes.CutPrefix(got, frame)
	if err == nil || errors.Is(err, io.EOF) || !whole || !bytes.HasPrefix(frame, rest) {
		t.Errorf("got %q, %v", got, err)
	}
	if len(w.kinds()) > 0 || strings.Contains(fmt.Sprint(err), "fault proxy") {
		t.Errorf("faults %v, %v", w.kinds(), err)
	}
}
