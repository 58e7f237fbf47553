package faultproxy

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// protobufPrefix is the beginning of an object in protobuf.
var protobufPrefix = []byte("k8s\x00")

// metadataOf returns the metadata of an object in JSON or protobuf, or nothing.
func metadataOf(body []byte) metav1.ObjectMeta {
	var object metav1.PartialObjectMetadata
	rest, isProtobuf := bytes.CutPrefix(body, protobufPrefix)
	if !isProtobuf {
		if json.Unmarshal(body, &object) != nil {
			return metav1.ObjectMeta{}
		}
		return object.ObjectMeta
	}
	// In protobuf the metadata is the first field of every object.
	var envelope runtime.Unknown
	if envelope.Unmarshal(rest) != nil || object.Unmarshal(envelope.Raw) != nil {
		return metav1.ObjectMeta{}
	}
	return object.ObjectMeta
}
