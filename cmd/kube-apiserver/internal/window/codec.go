package window

import (
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// codec is the innermost codec of the storage of custom resources: below the conversion between versions, and below
// the watch cache.
type codec struct {
	runtime.Codec
}

// NewCodec returns a codec that decodes the served form and encodes that of etcd.
func NewCodec(next runtime.Codec) runtime.Codec { return codec{next} }

// Decode returns the object in the served form.
func (c codec) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Codec.Decode(data, defaults, into)
	if decoded, _ := object.(*unstructured.Unstructured); decoded != nil {
		Serve(decoded)
	}
	return object, kind, err
}

// Encode writes the object in the form of etcd.
func (c codec) Encode(object runtime.Object, w io.Writer) error {
	if custom, ok := object.(*unstructured.Unstructured); ok {
		object = Stored(custom)
	}
	return c.Codec.Encode(object, w)
}

// Identifier differs from that of the codec below: what is encoded differs, too.
func (c codec) Identifier() runtime.Identifier {
	return "deletionWindow(" + c.Codec.Identifier() + ")"
}
