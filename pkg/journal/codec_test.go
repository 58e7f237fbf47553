package journal_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	. "github.com/exeunt-io/exeunt/pkg/journal"
)

func mustEncode(t testing.TB, e Entry) string {
	t.Helper()
	text, err := Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// same fails the test unless the entries are equal.
func same(t testing.TB, got, want Entry) {
	t.Helper()
	requests := func(e Entry) []Request { return append([]Request{e.Request}, e.Superseded...) }
	if len(requests(got)) != len(requests(want)) {
		t.Fatalf("%d requests, want %d", len(requests(got)), len(requests(want)))
	}
	for i, request := range requests(got) {
		if !proto.Equal(request.CreateVolumeRequest, requests(want)[i].CreateVolumeRequest) {
			t.Errorf("request %d = %v, want %v", i, request, requests(want)[i])
		}
		if got, want := payload(t, request), payload(t, requests(want)[i]); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("payload %d = %v, want %v", i, got, want)
		}
	}
	got.Request, got.Superseded, want.Request, want.Superseded = Request{}, nil, Request{}, nil
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("entry = %+v, want %+v", got, want)
	}
}

// payload returns the payload of the request with its data decoded, nil for none.
func payload(t testing.TB, request Request) []any {
	t.Helper()
	if request.Payload == nil {
		return nil
	}
	var data any
	if text := request.Payload.Data; len(text) > 0 {
		if err := json.Unmarshal(text, &data); err != nil {
			t.Fatal(err)
		}
	}
	return []any{request.Payload.Kind, request.Payload.Volume, data}
}

func TestEntrySurvivesEncoding(t *testing.T) {
	for name, change := range map[string]func(*Entry){
		"requested":  func(*Entry) {},
		"discarding": func(e *Entry) { e.State, e.Handle = Discarding, "vol-0123" },
		"unresolved": func(e *Entry) {
			e.CustodyBroken, e.Unresolved = true, &Unresolved{Reason: "secret gone", Since: 17, Finish: true}
		},
		"superseded requests": func(e *Entry) {
			e.Superseded = []Request{newEntry(1).Request, newEntry(1).Request}
			e.Superseded[0].AccessibilityRequirements = nil
		},
		"payloads": func(e *Entry) {
			payload := func(data string) Request {
				return Request{Payload: &Payload{Kind: "Provision", Volume: e.Volume.Name, Data: json.RawMessage(data)}}
			}
			e.Request, e.Superseded = payload(`{"class": {"parameters": {"<&>": "\u2028"}}}`),
				[]Request{payload("null"), payload("")}
		},
		"a volume of a snapshot": func(e *Entry) {
			e.Request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
				Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "snap-1"},
			}}
			e.Request.MutableParameters = map[string]string{"iops": "3000"}
		},
		"a block volume": func(e *Entry) {
			e.Request.VolumeCapabilities[0].AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
			e.Secret, e.Node = nil, ""
		},
		"odd characters": func(e *Entry) { e.Request.Parameters["<&>"] = "\u2028\x00\"\\\U0001F4BE" },
	} {
		t.Run(name, func(t *testing.T) {
			want := newEntry(1)
			change(&want)
			got, err := Decode(want.UID, mustEncode(t, want))
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, want)
		})
	}
}

func TestTypicalEntryIsSmall(t *testing.T) {
	if text := mustEncode(t, newEntry(1)); len(text) >= 600 {
		t.Errorf("%d bytes, want fewer than 600", len(text))
	}
}

// noise returns text that does not compress.
func noise(length int) string {
	var text strings.Builder
	for state := uint64(1); text.Len() < length; {
		state = state*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&text, "%016x", state)
	}
	return text.String()[:length]
}

func manySegments(count int) *csi.TopologyRequirement {
	var segments []*csi.Topology
	for i := range count {
		segments = append(segments,
			&csi.Topology{Segments: map[string]string{"kubernetes.io/hostname": fmt.Sprint(i, noise(40))}})
	}
	return &csi.TopologyRequirement{Requisite: segments, Preferred: append(segments[1:], segments[0])}
}

func TestLargeTopologyIsCutToTheFirstPreferred(t *testing.T) {
	large := newEntry(1)
	large.Request.AccessibilityRequirements = manySegments(1000)
	large.Superseded = []Request{large.Request}
	before := proto.Clone(large.Request.CreateVolumeRequest)
	got, err := Decode(large.UID, mustEncode(t, large))
	if err != nil {
		t.Fatal(err)
	}
	for i, request := range append(got.Superseded, got.Request) {
		cut := request.GetAccessibilityRequirements()
		if !got.TopologyCut || !request.TopologyCut || len(cut.GetPreferred()) != 1 || len(cut.GetRequisite()) != 1 ||
			!proto.Equal(cut.Preferred[0], large.Request.AccessibilityRequirements.Preferred[0]) {
			t.Errorf("request %d: topology = %v, cut = %v; want the first preferred segment only", i, cut, got.TopologyCut)
		}
	}
	if !proto.Equal(before, large.Request.CreateVolumeRequest) {
		t.Error("Encode has changed the caller's request")
	}
	again := newEntry(1) // a later entry with the request
	again.Request = got.Request
	if last, err := Decode(again.UID, mustEncode(t, again)); err != nil || !last.Request.TopologyCut {
		t.Errorf("written again the topology is cut: %v, %v", last.Request.TopologyCut, err)
	}
}

func TestTooLargeEntryIsRefused(t *testing.T) {
	for name, parameter := range map[string]string{
		"compressed": noise(20 << 10),
		// Few bytes compressed, but more than Decode accepts.
		"decoded": strings.Repeat("<", 300<<10),
	} {
		t.Run(name, func(t *testing.T) {
			large := newEntry(1)
			large.Request.Parameters["x"] = parameter
			if text, err := Encode(large); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%d bytes, error %v; want ErrTooLarge", len(text), err)
			}
		})
	}
}

// largest returns an entry that hardly fits.
func largest(t *testing.T) Entry {
	t.Helper()
	e := newEntry(1)
	for length := 2 * MaxEncoded; length > 0; length -= 16 {
		e.Request.Parameters["x"] = noise(length)
		if text, err := Encode(e); err == nil {
			if len(text) < MaxEncoded-64 {
				t.Fatalf("the largest entry has %d bytes", len(text))
			}
			return e
		}
	}
	t.Fatal("no entry fits")
	return e
}

func TestLargestEntryCanBecomeUnresolved(t *testing.T) {
	e := largest(t)
	e.CustodyBroken, e.Unresolved = true, &Unresolved{Reason: noise(4 << 10), Since: 1763805466, Finish: true}
	got, err := Decode(e.UID, mustEncode(t, e))
	if err != nil || !got.CustodyBroken || !got.Unresolved.Finish ||
		!strings.HasPrefix(e.Unresolved.Reason, got.Unresolved.Reason[:64]) {
		t.Errorf("entry = %+v, %v; want its marks", got.Unresolved, err)
	}
}

func TestLargestEntryCanBeAnnounced(t *testing.T) {
	e := largest(t)
	e.Announced = true
	text := mustEncode(t, e)
	if got, err := Decode(e.UID, text); err != nil || !got.Announced || got.TopologyCut {
		t.Errorf("%d bytes, announced %t, topology cut %t, %v", len(text), got.Announced, got.TopologyCut, err)
	}
	e.CustodyBroken, e.Unresolved = true, &Unresolved{Reason: noise(4 << 10), Since: 1763805466}
	if _, err := Decode(e.UID, mustEncode(t, e)); err != nil {
		t.Error(err)
	}
}

// An entry that is encoded must be readable for the next leader.
func TestEveryEncodedEntryIsDecoded(t *testing.T) {
	e := newEntry(1)
	e.Announced, e.CustodyBroken = true, true
	for length := 2 * MaxEncoded; length > 0; length -= 16 {
		e.Request.Parameters["x"] = noise(length)
		text, err := Encode(e)
		if errors.Is(err, ErrTooLarge) {
			continue
		}
		if _, failed := Decode(e.UID, text); err != nil || failed != nil {
			t.Errorf("entry of %d bytes: %v, %v", len(text), err, failed)
		}
		return
	}
	t.Fatal("no entry fits")
}

func TestReasonIsCutBetweenCharacters(t *testing.T) {
	e := newEntry(1)
	e.Unresolved = &Unresolved{Reason: "x" + strings.Repeat("é", MaxReason), Since: 1}
	got, err := Decode(e.UID, mustEncode(t, e))
	if err != nil || len(got.Unresolved.Reason) > MaxReason || strings.Trim(got.Unresolved.Reason, "xé") != "" {
		t.Errorf("reason = %q, %v", got.Unresolved.Reason, err)
	}
}

func TestSecretsAreNeitherWrittenNorRead(t *testing.T) {
	e := newEntry(1)
	e.Request.Secrets = map[string]string{"password": "hunter2"}
	if _, err := Encode(e); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Encode: %v, want an error without the secret", err)
	}
	forged := pack(t, `{"namespace":"a","name":"b","request":{"name":"pvc-1","secrets":{"password":"hunter2"}},"volume":{"metadata":{"name":"pvc-1"}}}`)
	if got, err := Decode("1", forged); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Decode: %+v, %v; want an error without the secret", got, err)
	}
}

// pack compresses without the dictionary, as a forger could.
func pack(t testing.TB, text string) string {
	t.Helper()
	var packed bytes.Buffer
	writer, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return "1" + base64.RawStdEncoding.EncodeToString(packed.Bytes())
}

func TestUnreadableTextIsAnError(t *testing.T) {
	const volume = `"request":{"name":"pvc-1"},"volume":{"metadata":{"name":"pvc-1"}}`
	whole := mustEncode(t, newEntry(1))
	for name, text := range map[string]string{
		"empty":                   "",
		"another format":          "2" + whole[1:],
		"not base64":              "1***",
		"nothing compressed":      "1",
		"cut off":                 whole[:len(whole)-8],
		"with something after it": whole + "AAAA",
		"not JSON":                pack(t, "hello"),
		"null":                    pack(t, "null"),
		"no volume":               pack(t, `{"namespace":"a","name":"b","request":{"name":"pvc-1"}}`),
		"no request":              pack(t, `{"namespace":"a","name":"b","volume":{"metadata":{"name":"pvc-1"}}}`),
		"a request for another": pack(t,
			`{"namespace":"a","name":"b","request":{"name":"pvc-2"},"volume":{"metadata":{"name":"pvc-1"}}}`),
		"an old request of another":   pack(t, `{"namespace":"a","name":"b","superseded":[{"name":"pvc-2"}],`+volume+`}`),
		"an old request of none":      pack(t, `{"namespace":"a","name":"b","superseded":[null],`+volume+`}`),
		"no claim":                    pack(t, `{`+volume+`}`),
		"an unknown state":            pack(t, `{"namespace":"a","name":"b","state":"melting",`+volume+`}`),
		"discarding without a handle": pack(t, `{"namespace":"a","name":"b","state":"discarding",`+volume+`}`),
		"large once decompressed":     pack(t, `{"namespace":"a","name":"b",`+volume+strings.Repeat(" ", 8<<20)+`}`),
		"longer than Encode makes":    pack(t, `{"namespace":"a","name":"`+noise(32<<10)+`",`+volume+`}`),
	} {
		t.Run(name, func(t *testing.T) {
			if e, err := Decode("uid", text); err == nil || !strings.Contains(err.Error(), "uid") {
				t.Errorf("entry %+v, error %v; want an error with the UID", e, err)
			}
		})
	}
	if _, err := Decode("1", pack(t, `{"namespace":"a","name":"b",`+volume+`}`)); err != nil {
		t.Errorf("a small entry: %v", err)
	}
}

func TestLaterFieldsAreIgnored(t *testing.T) {
	text := pack(t, `{"namespace":"a","name":"b","later":1,"request":{"name":"pvc-1","later":{"a":1}},"volume":{"metadata":{"name":"pvc-1"},"later":2}}`)
	if e, err := Decode("uid", text); err != nil || e.VolumeName() != "pvc-1" || e.UID != "uid" {
		t.Errorf("entry = %+v, %v", e, err)
	}
}

func TestEncodeIsSafeForConcurrentUse(t *testing.T) {
	var all sync.WaitGroup
	for number := range 16 {
		all.Go(func() {
			want := newEntry(number)
			if got, err := Decode(want.UID, mustEncode(t, want)); err != nil || got.Name != want.Name {
				t.Errorf("entry %d = %+v, %v", number, got, err)
			}
		})
	}
	all.Wait()
}

func TestEmptyEntryHasNoVolumeName(t *testing.T) {
	if name := (&Entry{}).VolumeName(); name != "" {
		t.Errorf("volume name = %q", name)
	}
	if text, err := json.Marshal(Request{}); err != nil || string(text) != "null" {
		t.Errorf("request = %s, %v", text, err)
	}
}

func TestEntryThatCannotBeDecodedIsNotEncoded(t *testing.T) {
	for name, change := range map[string]func(*Entry){
		"no claim":                    func(e *Entry) { e.Name = "" },
		"no volume":                   func(e *Entry) { e.Volume = nil },
		"a volume without a name":     func(e *Entry) { e.Volume = &v1.PersistentVolume{} },
		"no request":                  func(e *Entry) { e.Request = Request{} },
		"discarding without a handle": func(e *Entry) { e.State = Discarding },
		"an unknown state":            func(e *Entry) { e.State = "melting" },
		"an old request of another":   func(e *Entry) { e.Superseded = []Request{{}} },
		"a payload of another volume": func(e *Entry) { e.Request = Request{Payload: &Payload{Kind: "Provision", Volume: "pvc-2"}} },
		"a payload without a kind":    func(e *Entry) { e.Request = Request{Payload: &Payload{Volume: e.Volume.Name}} },
		"a payload beside a message":  func(e *Entry) { e.Request.Payload = &Payload{Kind: "Provision", Volume: e.Volume.Name} },
		"a payload that is not JSON": func(e *Entry) {
			e.Request = Request{Payload: &Payload{Kind: "Provision", Volume: e.Volume.Name, Data: json.RawMessage("{")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEntry(1)
			change(&e)
			if text, err := Encode(e); err == nil || errors.Is(err, ErrTooLarge) {
				t.Errorf("text %q, error %v", text, err)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	b.ReportAllocs()
	e, size := newEntry(1), 0
	for b.Loop() {
		size = len(mustEncode(b, e))
	}
	b.ReportMetric(float64(size), "bytes/entry")
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	text := mustEncode(b, newEntry(1))
	for b.Loop() {
		if _, err := Decode("uid", text); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRequestWithSecretsIsNotEncoded(t *testing.T) {
	request := Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: "pvc-1", Secrets: map[string]string{"key": "hidden"}}}
	if text, err := request.MarshalJSON(); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("text = %s, error = %v, want an error without the secret", text, err)
	}
}

func TestMissingRequestStaysMissing(t *testing.T) {
	var request Request
	if err := request.UnmarshalJSON([]byte("null")); err != nil || request.CreateVolumeRequest != nil || request.Payload != nil {
		t.Errorf("request = %+v, error = %v, want no request", request, err)
	}
}

func TestPayloadOfWrongTypeIsAnError(t *testing.T) {
	var request Request
	if err := request.UnmarshalJSON([]byte(`{"kind":"directory","name":7}`)); err == nil {
		t.Errorf("request = %+v, want an error", request)
	}
}
