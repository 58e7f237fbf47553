// Package controllertest has what tests of controllers share: objects as the API server sends them and as an
// informer decodes them, and the events about deletions that wait.
package controllertest

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/exeunt-io/exeunt/pkg/controller/partial"
)

// Encode returns the object as the API server sends it. The content type is
// [runtime.ContentTypeProtobuf] or [runtime.ContentTypeJSON].
func Encode(tb testing.TB, contentType string, object runtime.Object) []byte {
	tb.Helper()
	data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info(contentType).Serializer, v1.SchemeGroupVersion),
		object)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// Decoder returns the decoder of an informer with the rules.
func Decoder(contentType string, rules partial.Rules) runtime.Decoder {
	codecs := scheme.Codecs.WithoutConversion()
	return partial.NewDecoder(codecs.DecoderToVersion(info(contentType).Serializer, v1.SchemeGroupVersion), rules)
}

func info(contentType string) runtime.SerializerInfo {
	found, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), contentType)
	return found
}

// Decode returns the object as an informer with the rules decodes it.
func Decode[T runtime.Object](tb testing.TB, rules partial.Rules, object T) T {
	tb.Helper()
	decoded, err := runtime.Decode(Decoder(runtime.ContentTypeProtobuf, rules),
		Encode(tb, runtime.ContentTypeProtobuf, object))
	if err != nil {
		tb.Fatal(err)
	}
	return decoded.(T)
}

// MeasureDecode measures how an informer with the rules decodes the object.
func MeasureDecode(b *testing.B, rules partial.Rules, object runtime.Object) {
	b.Helper()
	data, decoder := Encode(b, runtime.ContentTypeProtobuf, object), Decoder(runtime.ContentTypeProtobuf, rules)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := runtime.Decode(decoder, data); err != nil {
			b.Fatal(err)
		}
	}
}

// WithManagedFields adds managed fields as large as those of an object that four programs
// have written.
func WithManagedFields[T metav1.Object](object T) T {
	fields := `{"f:metadata":{"f:annotations":{".":{},"f:pv.kubernetes.io/provisioned-by":{}},"f:finalizers":{".":{},"v:\"kubernetes.io/pv-protection\"":{}}},"f:spec":{"f:accessModes":{},"f:capacity":{".":{},"f:storage":{}},"f:claimRef":{},"f:csi":{}}}`
	var managed []metav1.ManagedFieldsEntry
	for _, manager := range []string{"csi-provisioner", "kube-controller-manager", "pv-controller", "kubectl"} {
		managed = append(managed, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
	object.SetManagedFields(managed)
	return object
}
