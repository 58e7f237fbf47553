package window_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	. "github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/window"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

func TestCodecServesAndStores(t *testing.T) {
	codec := NewCodec(runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme))
	stored := text(t, object(Format(at(0)), int64(0), span(0, 300))) + "\n"
	decoded, _, err := codec.Decode([]byte(stored), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	served, _ := decoded.(*unstructured.Unstructured)
	if got, want := text(t, served), text(t, object(Format(at(300)), int64(300), span(0, 300))); got != want {
		t.Errorf("served %s, want %s", got, want)
	}
	var data bytes.Buffer
	if err := codec.Encode(decoded, &data); err != nil || data.String() != stored {
		t.Errorf("stored %s, %v, want %s", &data, err, stored)
	}
}

// fixed is a codec that decodes one object.
type fixed struct {
	runtime.Codec
	object runtime.Object
	err    error
}

func (f fixed) Decode([]byte, *schema.GroupVersionKind, runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return f.object, nil, f.err
}

func TestCodecLeavesOtherObjects(t *testing.T) {
	var none *unstructured.Unstructured
	broken := errors.New("broken")
	for name, tc := range map[string]fixed{
		"no object":    {nil, nil, broken},
		"nil":          {nil, none, broken},
		"other object": {nil, &metav1.Status{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _, err := NewCodec(tc).Decode(nil, nil, nil); got != tc.object || !errors.Is(err, tc.err) {
				t.Errorf("Decode() = %v, %v", got, err)
			}
		})
	}
	scheme := runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme)
	var data bytes.Buffer
	if err := NewCodec(scheme).Encode(&unstructured.UnstructuredList{}, &data); err != nil || data.Len() == 0 {
		t.Errorf("a list: %v %q", err, &data)
	}
}

// #17: what another program stored is served as it is.
func TestServeLeavesGracePeriodOfOthers(t *testing.T) {
	for name, value := range map[string]*unstructured.Unstructured{
		"above 0":         object(Format(at(300)), int64(300), span(300, 600)),
		"no grace period": object(Format(at(0)), nil, span(0, 300)),
	} {
		t.Run(name, func(t *testing.T) {
			served := value.DeepCopy()
			if Serve(served); text(t, served) != text(t, value) {
				t.Errorf("served %s, want %s", text(t, served), text(t, value))
			}
		})
	}
}

// The window of an object counts once, and one that is there needs no room.
func TestWindowNeedsRoomOnce(t *testing.T) {
	for room, want := range map[int]bool{len(deadline.Annotation) + Length: true, len(deadline.Annotation) + Length - 1: false} {
		value := object(Format(at(300)), int64(300), span(0, 300))
		size := validation.TotalAnnotationSizeLimitB - room - len("other") - len("1") - len("k")
		annotations := value.GetAnnotations()
		annotations["k"] = strings.Repeat("x", size)
		value.SetAnnotations(annotations)
		metadata, _ := value.Object["metadata"].(map[string]any)
		if got := Fits(metadata, Length); got != want {
			t.Errorf("room for %d bytes: %t", room, got)
		}
		if got := *Stored(value).GetDeletionGracePeriodSeconds(); got != 0 {
			t.Errorf("room for %d bytes: %d seconds in etcd", room, got)
		}
	}
}

func TestRemoveAnnotation(t *testing.T) {
	for name, tc := range map[string]struct{ before, after map[string]any }{
		"none":       {map[string]any{}, map[string]any{}},
		"empty":      {map[string]any{Annotations: map[string]any{}}, map[string]any{Annotations: map[string]any{}}},
		"other":      {annotated("other"), annotated("other")},
		"only":       {annotated(deadline.Annotation), map[string]any{}},
		"with other": {annotated(deadline.Annotation, "other"), annotated("other")},
	} {
		t.Run(name, func(t *testing.T) {
			RemoveAnnotation(tc.before)
			before, after := &unstructured.Unstructured{Object: tc.before}, &unstructured.Unstructured{Object: tc.after}
			if got, want := text(t, before), text(t, after); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// annotated returns metadata with annotations.
func annotated(keys ...string) map[string]any {
	annotations := map[string]any{}
	for _, key := range keys {
		annotations[key] = "1"
	}
	return map[string]any{Annotations: annotations}
}
