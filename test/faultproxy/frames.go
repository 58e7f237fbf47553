package faultproxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// lengthBytes is the size of the length before each protobuf frame, big-endian.
const lengthBytes = 4

// format is how the events of a watch are separated in a stream.
type format string

const (
	// jsonLines: one event per line.
	jsonLines = format(runtime.ContentTypeJSON)
	// protobufFrames: each event follows its length.
	protobufFrames = format(runtime.ContentTypeProtobuf)
	// opaque: the borders are unknown.
	opaque = format("")
)

// formatOf returns the format of a stream.
func formatOf(header http.Header) format {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || header.Get("Content-Encoding") != "" {
		return opaque
	}
	if f := format(media); f == jsonLines || f == protobufFrames {
		return f
	}
	return opaque
}

// read returns the next event as it is in the stream. With an error it returns the bytes
// before the error.
func (f format) read(stream *bufio.Reader) ([]byte, error) {
	switch f {
	case jsonLines:
		return stream.ReadBytes('\n')
	case protobufFrames:
		length, err := stream.Peek(lengthBytes)
		if err != nil {
			return readSome(stream, len(length), err)
		}
		return readSome(stream, lengthBytes+int(binary.BigEndian.Uint32(length)), nil)
	default:
		buffer := make([]byte, 32<<10)
		count, err := stream.Read(buffer)
		return buffer[:count], err
	}
}

// readSome returns the next count bytes and err, or the error of the stream. It takes memory only
// for the bytes that the stream has: the count is a number in the stream.
func readSome(stream io.Reader, count int, err error) ([]byte, error) {
	var frame bytes.Buffer
	switch _, failed := io.CopyN(&frame, stream, int64(count)); {
	case errors.Is(failed, io.EOF) && frame.Len() > 0:
		return frame.Bytes(), io.ErrUnexpectedEOF
	case failed != nil:
		return nil, failed
	}
	return frame.Bytes(), err
}

// event is what the proxy reads of an event of a watch.
type event struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// parse returns the event in a frame; it is empty if the frame cannot be parsed.
func (f format) parse(frame []byte) event {
	var parsed event
	switch f {
	case jsonLines:
		if json.Unmarshal(frame, &parsed) != nil {
			return event{}
		}
	case protobufFrames:
		var encoded metav1.WatchEvent
		if len(frame) < lengthBytes || encoded.Unmarshal(frame[lengthBytes:]) != nil {
			return event{}
		}
		parsed = event{Type: watch.EventType(encoded.Type), Object: encoded.Object.Raw}
	default: // opaque
	}
	return parsed
}

// encode returns the frame of an ERROR event with status.
func (f format) encode(status metav1.Status) ([]byte, error) {
	media, found := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), string(f))
	if !found || media.StreamSerializer == nil {
		return nil, fmt.Errorf("encode event: no serializer for %q", f)
	}
	object, err := runtime.Encode(scheme.Codecs.EncoderForVersion(media.Serializer, metav1.Unversioned), &status)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	encoded := metav1.WatchEvent{Type: string(watch.Error), Object: runtime.RawExtension{Raw: object}}
	if f == protobufFrames {
		body, err := encoded.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encode event: %w", err)
		}
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), nil
	}
	encoded.Object.Raw = bytes.TrimSpace(object)
	body, err := json.Marshal(encoded)
	if err != nil {
		return nil, fmt.Errorf("encode event: %w", err)
	}
	return append(body, '\n'), nil
}
