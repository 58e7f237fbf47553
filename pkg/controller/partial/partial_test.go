package partial_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/pkg/controller/partial/partialtest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

var rules = partial.Rules{
	"PersistentVolume": {
		Fields:  partial.Except(v1.PersistentVolume{}, "metadata.managedFields"),
		Foreign: partial.Only(v1.PersistentVolume{}, "metadata.name", "spec.persistentVolumeSource.csi.driver"),
		Whole:   []string{"ours.example.com"}, Has: partial.PathOf(v1.PersistentVolume{}, "spec.persistentVolumeSource.csi"),
	},
	"Pod": {Fields: partial.Only(v1.Pod{}, "metadata.name", "spec.volumes.name", "status.phase")},
}

func volume(name, driver string) *v1.PersistentVolume {
	return partialtest.WithManagedFields(&v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
		Spec: v1.PersistentVolumeSpec{
			StorageClassName:       "class",
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "handle"}},
		},
	})
}

func foreign(name, driver string) *v1.PersistentVolume {
	reduced := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	reduced.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver}
	return reduced
}

func unmanaged(volume *v1.PersistentVolume) *v1.PersistentVolume {
	volume.ManagedFields = nil
	return volume
}

func bookmark(pod *v1.Pod) *v1.Pod {
	pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return pod
}

func TestDecode(t *testing.T) {
	withoutCSI := volume("volume", "theirs.example.com")
	withoutCSI.Spec.CSI, withoutCSI.ManagedFields = nil, nil
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "space", UID: "uid", ResourceVersion: "7"},
		Spec:       v1.PodSpec{NodeName: "node", Volumes: []v1.Volume{{Name: "one"}, {Name: "two", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: "Memory"}}}}},
		Status:     v1.PodStatus{Phase: v1.PodRunning, Message: "text"},
	}
	for name, tc := range map[string]struct{ object, want runtime.Object }{
		"own volume":         {volume("volume", "ours.example.com"), unmanaged(volume("volume", "ours.example.com"))},
		"foreign volume":     {volume("volume", "theirs.example.com"), foreign("volume", "theirs.example.com")},
		"volume without CSI": {withoutCSI, withoutCSI},
		"pod": {pod, &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Status: v1.PodStatus{Phase: v1.PodRunning},
			Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "one"}, {Name: "two"}}},
		}},
		"end of initial events": {bookmark(pod.DeepCopy()), bookmark(pod.DeepCopy())},
		"kind without a rule":   {&v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "b"}}, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "b"}}},
		"list": {
			&v1.PersistentVolumeList{
				ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"},
				Items:    []v1.PersistentVolume{*volume("a", "theirs.example.com"), *volume("b", "ours.example.com")},
			},
			&v1.PersistentVolumeList{
				ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "more"},
				Items:    []v1.PersistentVolume{*foreign("a", "theirs.example.com"), *unmanaged(volume("b", "ours.example.com"))},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if difference := cmp.Diff(tc.want, partialtest.Decode(t, rules, tc.object)); difference != "" {
				t.Errorf("decoded object differs (-want +got):\n%s", difference)
			}
		})
	}
}

func TestJSONIsDecodedWhole(t *testing.T) {
	object := volume("volume", "theirs.example.com")
	decoded, err := runtime.Decode(partialtest.Decoder(runtime.ContentTypeJSON, rules), partialtest.Encode(t, runtime.ContentTypeJSON, object))
	if err != nil {
		t.Fatal(err)
	}
	if got := decoded.(*v1.PersistentVolume); got.UID != "uid" || len(got.ManagedFields) == 0 {
		t.Errorf("decoded object = %v", got)
	}
}

// An error in the encoding is reported by the decoder of whole objects.
func TestTruncatedObjectIsAnError(t *testing.T) {
	data := partialtest.Encode(t, runtime.ContentTypeProtobuf, volume("volume", "theirs.example.com"))
	for length := range data {
		if _, err := runtime.Decode(partialtest.Decoder(runtime.ContentTypeProtobuf, rules), data[:length]); err == nil {
			whole, wholeErr := runtime.Decode(partialtest.Decoder(runtime.ContentTypeProtobuf, nil), data[:length])
			if wholeErr != nil {
				t.Fatalf("%d of %d bytes are decoded as %v, want error %v", length, len(data), whole, wholeErr)
			}
		}
	}
}

func TestUnknownPathPanics(t *testing.T) {
	for name, call := range map[string]func(){
		"only":   func() { partial.Only(v1.Pod{}, "metadata.nme") },
		"except": func() { partial.Except(v1.Pod{}, "status.phse") },
		"path":   func() { partial.PathOf(v1.Pod{}, "spec.nowhere") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if problem, _ := recover().(string); !strings.Contains(problem, "has no protobuf field") {
					t.Errorf("panic %q", problem)
				}
			}()
			call()
		})
	}
}

// Buffers are used again: a decoded object must not share their memory.
func TestDecodedObjectsShareNoMemory(t *testing.T) {
	first := partialtest.Decode(t, rules, volume("first", "ours.example.com"))
	want := first.DeepCopy()
	for range 100 {
		partialtest.Decode(t, rules, volume("other", "xxxx.example.com"))
	}
	if difference := cmp.Diff(want, first); difference != "" {
		t.Errorf("a decoded object changed (-want +got):\n%s", difference)
	}
}

// frameSerializers returns the decoder of watch events of an informer, and client-go's.
func frameSerializers() (ours, whole runtime.Serializer) {
	for _, info := range scheme.Codecs.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeProtobuf {
			return partial.FrameDecoder(info.StreamSerializer.Serializer), info.StreamSerializer.Serializer
		}
	}
	return nil, nil
}

func frame(tb testing.TB, kind watch.EventType, object runtime.Object) []byte {
	tb.Helper()
	_, whole := frameSerializers()
	event := &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: partialtest.Encode(tb, runtime.ContentTypeProtobuf, object)}}
	var encoded bytes.Buffer
	if err := whole.Encode(event, &encoded); err != nil {
		tb.Fatal(err)
	}
	return encoded.Bytes()
}

func TestObjectOfWatchEventIsNotCopied(t *testing.T) {
	ours, _ := frameSerializers()
	for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error, "OTHER"} {
		data, event := frame(t, kind, volume("volume", "ours.example.com")), &metav1.WatchEvent{}
		decoded, _, err := ours.Decode(data, nil, event)
		if err != nil || decoded != event || event.Type != string(kind) {
			t.Fatalf("decoded %v, %v, want an event %s", decoded, err, kind)
		}
		raw := event.Object.Raw
		if at := bytes.Index(data, raw); at < 0 || &data[at] != &raw[0] {
			t.Errorf("%s: the object was copied", kind)
		}
		if got, err := runtime.Decode(partialtest.Decoder(runtime.ContentTypeProtobuf, rules), raw); err != nil || got.(*v1.PersistentVolume).Name != "volume" {
			t.Errorf("%s: object %v, %v", kind, got, err)
		}
	}
}

// FuzzFrame checks that watch events are decoded as by client-go.
func FuzzFrame(f *testing.F) {
	f.Add(frame(f, watch.Added, volume("volume", "theirs.example.com")))
	f.Add(frame(f, "", &v1.Pod{}))
	f.Add([]byte{})
	f.Add([]byte{0x0a, 0x01, 'A', 0x0a, 0x01, 'B'})
	f.Add([]byte{0x12, 0x04, 0x0a, 0x00, 0x0a, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, whole := frameSerializers()
		got, want := &metav1.WatchEvent{}, &metav1.WatchEvent{}
		_, _, gotErr := ours.Decode(data, nil, got)
		_, _, wantErr := whole.Decode(data, nil, want)
		if (gotErr == nil) != (wantErr == nil) || wantErr == nil && (got.Type != want.Type || !bytes.Equal(got.Object.Raw, want.Object.Raw)) {
			t.Errorf("decoded %q %x (%v), want %q %x (%v)", got.Type, got.Object.Raw, gotErr, want.Type, want.Object.Raw, wantErr)
		}
	})
}

// FuzzEnvelope checks that arbitrary bytes are decoded with a rule that keeps everything as by client-go.
func FuzzEnvelope(f *testing.F) {
	f.Add(partialtest.Encode(f, runtime.ContentTypeProtobuf, volume("volume", "theirs.example.com")))
	f.Add(partialtest.Encode(f, runtime.ContentTypeProtobuf, &v1.PersistentVolumeList{Items: []v1.PersistentVolume{*volume("volume", "theirs.example.com")}}))
	everything := partial.Rules{"PersistentVolume": {Fields: partial.Except(v1.PersistentVolume{})}}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, gotErr := runtime.Decode(partialtest.Decoder(runtime.ContentTypeProtobuf, everything), data)
		want, wantErr := runtime.Decode(partialtest.Decoder(runtime.ContentTypeProtobuf, nil), data)
		if wantErr == nil && (gotErr != nil || !reflect.DeepEqual(got, want)) {
			t.Errorf("decoded %v (%v), want %v", got, gotErr, want)
		}
	})
}

// FuzzDecode checks that arbitrary bytes are decoded as without rules, apart from the
// fields that the rules remove.
func FuzzDecode(f *testing.F) {
	fuzzobj.AddSeeds(f, 20, 300)
	f.Add(partialtest.Encode(f, runtime.ContentTypeProtobuf, volume("volume", "theirs.example.com")))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		_, _ = runtime.Decode(partialtest.Decoder(runtime.ContentTypeProtobuf, rules), data)
		if !bytes.Equal(before, data) {
			t.Fatal("decoding changed the encoded object")
		}
		object := fuzzobj.New(data).Volume("volume")
		whole, part := partialtest.Decode(t, nil, object), partialtest.Decode(t, rules, object)
		want := foreign(object.Name, "")
		switch {
		case object.Spec.CSI == nil || strings.Contains(object.String(), "ours.example.com"):
			want = whole
		default:
			want.Spec.CSI.Driver = object.Spec.CSI.Driver
		}
		if !reflect.DeepEqual(part, want) {
			t.Errorf("decoded %v, want %v", part, want)
		}
	})
}
