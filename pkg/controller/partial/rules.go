package partial

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Rule says which fields of the objects of a kind are decoded.
type Rule struct {
	// Fields are decoded of every object.
	Fields Fields
	// Foreign are decoded of a foreign object, nil if no object is foreign: one that has
	// none of the texts of Whole anywhere in its encoding, and the field of Has.
	Foreign Fields
	Whole   []string
	// Has is the path of a field, nil for no condition.
	Has Path
}

// Path are the numbers of nested fields.
type Path []protowire.Number

// PathOf returns the path of a field; see [Only].
func PathOf(object any, path string) Path {
	var numbers Path
	message := reflect.TypeOf(object)
	for name := range strings.SplitSeq(path, ".") {
		number, inner := fieldOf(message, name)
		numbers, message = append(numbers, number), inner
	}
	return numbers
}

// Rules are rules for kinds of the core group, such as "Pod".
type Rules map[string]Rule

// prefix begins every object that the API server encodes as protobuf.
var prefix = []byte{'k', '8', 's', 0}

// Numbers of fields.
var (
	typeField  = PathOf(runtime.Unknown{}, "typeMeta")[0]
	rawField   = PathOf(runtime.Unknown{}, "raw")[0]
	kindField  = PathOf(runtime.TypeMeta{}, "kind")[0]
	groupField = PathOf(runtime.TypeMeta{}, "apiVersion")[0]
	itemsField = PathOf(v1.PodList{}, "items")[0] // the same in every list
)

// cut appends the encoding with the fields that the rules keep. It returns false if no rule
// applies, or if the encoding is not understood.
func (r Rules) cut(to, data []byte) ([]byte, bool) {
	unknown, ok := bytes.CutPrefix(data, prefix)
	if !ok {
		return nil, false
	}
	meta, _ := contentOf(unknown, typeField)
	group, _ := contentOf(meta, groupField)
	kind, _ := contentOf(meta, kindField)
	item, isList := strings.CutSuffix(string(kind), "List")
	rule, known := r[item]
	if !known || string(group) != v1.SchemeGroupVersion.String() {
		return nil, false
	}
	object := rule.cut
	if isList {
		object = rule.cutList
	}
	return edit(append(to, prefix...), unknown, rawField, object)
}

// message is an object that decodes itself.
type message interface {
	runtime.Object
	Unmarshal(data []byte) error
}

// decode decodes an object of a kind with a rule without a copy of what is left out. It returns false for anything
// else, and for an error.
func (r Rules) decode(data []byte) (runtime.Object, *schema.GroupVersionKind, bool) {
	unknown, ok := bytes.CutPrefix(data, prefix)
	if !ok {
		return nil, nil, false
	}
	meta, raw, ok := twoFields(unknown, typeField, rawField)
	if !ok {
		return nil, nil, false
	}
	group, kind, ok := twoFields(meta, groupField, kindField)
	rule, known := r[string(kind)]
	if !ok || !known || string(group) != v1.SchemeGroupVersion.String() {
		return nil, nil, false
	}
	gvk := v1.SchemeGroupVersion.WithKind(string(kind))
	object, err := scheme.Scheme.New(gvk)
	into, decodes := object.(message)
	if err != nil || !decodes {
		return nil, nil, false
	}
	buffer, _ := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	kept, ok := rule.cut((*buffer)[:0], raw)
	if !ok || into.Unmarshal(kept) != nil {
		return nil, nil, false
	}
	if cap(kept) <= greatestBuffer {
		*buffer = kept
	}
	return object, &gvk, true
}

// cutList appends a list of the kept fields of its objects.
func (r Rule) cutList(to, list []byte) ([]byte, bool) {
	return edit(to, list, itemsField, r.cut)
}

// initialEvents is in the bookmark that ends a streamed list.
var initialEvents = []byte(metav1.InitialEventsAnnotationKey)

// cut appends the kept fields of an object.
func (r Rule) cut(to, object []byte) ([]byte, bool) {
	switch {
	case bytes.Contains(object, initialEvents):
		return append(to, object...), true
	case r.isForeign(object):
		return cut(to, object, r.Foreign)
	}
	return cut(to, object, r.Fields)
}

func (r Rule) isForeign(object []byte) bool {
	if r.Foreign == nil || len(r.Has) > 0 && !has(object, r.Has) {
		return false
	}
	return !slices.ContainsFunc(r.Whole, func(text string) bool { return bytes.Contains(object, []byte(text)) })
}
