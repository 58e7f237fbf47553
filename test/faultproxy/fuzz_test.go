package faultproxy

import (
	"bufio"
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzFrames splits any stream into frames: no byte is lost, whatever the borders say.
func FuzzFrames(f *testing.F) {
	for _, kind := range []format{jsonLines, protobufFrames} {
		frame, err := kind.encode(metav1.Status{Reason: metav1.StatusReasonExpired})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(kind), append(frame, frame...))
		f.Add(string(kind), frame[:len(frame)/2])
	}
	f.Add(string(protobufFrames), []byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Add(string(opaque), []byte("bytes"))
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		stream := bufio.NewReader(bytes.NewReader(text))
		var all []byte
		for {
			frame, err := format(kind).read(stream)
			format(kind).parse(frame)
			all = append(all, frame...)
			if err != nil {
				break
			}
		}
		if !bytes.Equal(all, text) {
			t.Errorf("the frames of %q have %q, want %q", kind, all, text)
		}
	})
}
