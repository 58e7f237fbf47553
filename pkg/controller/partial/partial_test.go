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

	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/test/controllertest"
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
	return controllertest.WithManagedFields(&v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", ResourceVersion: "7", Labels: map[string]string{"a": "b"}},
		Spec: v1.PersistentVolumeSpec{
			StorageClassName: "class",
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver,
				VolumeHandle: "handle"}},
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
		Spec: v1.PodSpec{NodeName: "node", Volumes: []v1.Volume{{Name: "one"},
			{Name: "two", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: "Memory"}}}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, Message: "text"},
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
			if difference := cmp.Diff(tc.want, controllertest.Decode(t, rules, tc.object)); difference != "" {
				t.Errorf("decoded object differs (-want +got):\n%s", difference)
			}
		})
	}
}

func TestJSONIsDecodedWhole(t *testing.T) {
	object := volume("volume", "theirs.example.com")
	decoded, err := runtime.Decode(controllertest.Decoder(runtime.ContentTypeJSON, rules),
		controllertest.Encode(t, runtime.ContentTypeJSON, object))
	if err != nil {
		t.Fatal(err)
	}
	if got := decoded.(*v1.PersistentVolume); got.UID != "uid" || len(got.ManagedFields) == 0 {
		t.Errorf("decoded object = %v", got)
	}
}

// An error in the encoding is reported by the decoder of whole objects.
func TestTruncatedObjectIsAnError(t *testing.T) {
	data := controllertest.Encode(t, runtime.ContentTypeProtobuf, volume("volume", "theirs.example.com"))
	for length := range data {
		if _, err := runtime.Decode(controllertest.Decoder(runtime.ContentTypeProtobuf, rules), data[:length]); err == nil {
			whole, wholeErr := runtime.Decode(controllertest.Decoder(runtime.ContentTypeProtobuf, nil), data[:length])
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
	first := controllertest.Decode(t, rules, volume("first", "ours.example.com"))
	want := first.DeepCopy()
	for range 100 {
		controllertest.Decode(t, rules, volume("other", "xxxx.example.com"))
	}
	if difference := cmp.Diff(want, first); difference != "" {
		t.Errorf("a decoded object changed (-want +got):\n%s", difference)
	}
}

// FuzzEnvelope checks that arbitrary bytes are decoded with a rule that keeps everything as by client-go.
func FuzzEnvelope(f *testing.F) {
	f.Add(controllertest.Encode(f, runtime.ContentTypeProtobuf, volume("volume", "theirs.example.com")))
	f.Add(controllertest.Encode(f, runtime.ContentTypeProtobuf,
		&v1.PersistentVolumeList{Items: []v1.PersistentVolume{*volume("volume", "theirs.example.com")}}))
	everything := partial.Rules{"PersistentVolume": {Fields: partial.Except(v1.PersistentVolume{})}}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, gotErr := runtime.Decode(controllertest.Decoder(runtime.ContentTypeProtobuf, everything), data)
		want, wantErr := runtime.Decode(controllertest.Decoder(runtime.ContentTypeProtobuf, nil), data)
		if wantErr == nil && (gotErr != nil || !reflect.DeepEqual(got, want)) {
			t.Errorf("decoded %v (%v), want %v", got, gotErr, want)
		}
	})
}

// FuzzDecode checks that arbitrary bytes are decoded as without rules, apart from the
// fields that the rules remove.
func FuzzDecode(f *testing.F) {
	fuzzobj.AddSeeds(f, 20, 300)
	f.Add(controllertest.Encode(f, runtime.ContentTypeProtobuf, volume("volume", "theirs.example.com")))
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		_, _ = runtime.Decode(controllertest.Decoder(runtime.ContentTypeProtobuf, rules), data)
		if !bytes.Equal(before, data) {
			t.Fatal("decoding changed the encoded object")
		}
		object := fuzzobj.New(data).Volume("volume")
		whole, part := controllertest.Decode(t, nil, object), controllertest.Decode(t, rules, object)
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
