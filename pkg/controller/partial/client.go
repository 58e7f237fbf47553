package partial

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// NewClient returns the client with another client for the core group, which decodes only
// what the rules keep.
func NewClient(config *rest.Config, client kubernetes.Interface, rules Rules) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &v1.SchemeGroupVersion, "/api"
	codecs := rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()
	config.NegotiatedSerializer = serializer{codecs, rules}
	core, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server for partial objects: %w", err)
	}
	return partialClient{Interface: client, core: corev1.New(core)}, nil
}

type partialClient struct {
	kubernetes.Interface
	core corev1.CoreV1Interface
}

// CoreV1 returns the client that decodes parts of objects.
func (c partialClient) CoreV1() corev1.CoreV1Interface { return c.core }

// serializer cuts fields out of encoded objects before they are decoded.
type serializer struct {
	runtime.NegotiatedSerializer
	rules Rules
}

// DecoderToVersion returns a decoder of what the rules keep.
func (s serializer) DecoderToVersion(whole runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return NewDecoder(s.NegotiatedSerializer.DecoderToVersion(whole, version), s.rules)
}

// NewDecoder returns a decoder of what the rules keep; the given one decodes whole objects.
func NewDecoder(whole runtime.Decoder, rules Rules) runtime.Decoder {
	return decoder{Decoder: whole, rules: rules}
}

type decoder struct {
	runtime.Decoder
	rules Rules
}

// buffers hold cut objects while they are decoded: decoding copies what it returns.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// greatestBuffer is the capacity in bytes of the greatest buffer that is used again: that
// of a list is not.
const greatestBuffer = 64 << 10

// Decode decodes what the rules keep.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if defaults == nil && into == nil {
		if object, kind, ok := d.rules.decode(data); ok {
			return object, kind, nil
		}
	}
	buffer, _ := buffers.Get().(*[]byte)
	if kept, ok := d.rules.cut((*buffer)[:0], data); ok {
		*buffer, data = kept, kept
	}
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	if cap(*buffer) <= greatestBuffer {
		buffers.Put(buffer)
	}
	return object, kind, err
}
