package journal_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	. "github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// FuzzDecode: no text makes Decode fail in any other way than by an error, and what
// it reads can be written and read again.
func FuzzDecode(f *testing.F) {
	f.Add(mustEncode(f, newEntry(1)))
	f.Add(pack(f, `{"namespace":"a","name":"b","request":{"name":"pvc-1"},"volume":{"metadata":{"name":"pvc-1"}}}`))
	f.Add(pack(f, `{"namespace":"a","name":"b","request":null,"superseded":[null],"volume":{}}`))
	f.Add("1")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Decode("uid", text)
		if err != nil {
			return
		}
		again, err := Encode(first)
		if errors.Is(err, ErrTooLarge) {
			return // compressed better than Encode does
		}
		if err != nil {
			t.Fatalf("decoded, but not encoded: %v", err)
		}
		second, err := Decode("uid", again)
		if err != nil {
			t.Fatalf("encoded, but not decoded: %v", err)
		}
		if first.Unresolved != nil {
			first.Unresolved.Reason, second.Unresolved.Reason = "", "" // which is cut
		}
		if !first.TopologyCut && second.TopologyCut {
			return
		}
		same(t, second, first)
	})
}

// FuzzRoundTrip encodes and decodes entries made of arbitrary objects.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("a claim for a volume"), "node-1", "vol-1", int64(1))
	f.Add([]byte{}, "", "", int64(-1))
	f.Fuzz(func(t *testing.T, choices []byte, node, handle string, size int64) {
		want := fuzzedEntry(fuzzobj.New(choices), strings.ToValidUTF8(node, "?"), handle, size)
		text, err := Encode(want)
		if err != nil {
			return
		}
		got, err := Decode(want.UID, text)
		if err != nil {
			t.Fatalf("encoded, but not decoded: %v", err)
		}
		if got.TopologyCut && !want.TopologyCut {
			return
		}
		same(t, got, want)
	})
}

func fuzzedEntry(dice *fuzzobj.Choices, node, handle string, size int64) Entry {
	claim, volume := dice.Claim("p0"), dice.Volume("pvc-p0")
	if volume.DeletionTimestamp.IsZero() { // JSON does not tell a zero time from none
		volume.DeletionTimestamp = nil
	}
	request := func() Request {
		return Request{CreateVolumeRequest: &csi.CreateVolumeRequest{
			Name:          fuzzobj.Pick(dice, volume.Name, "another"),
			CapacityRange: &csi.CapacityRange{RequiredBytes: size, LimitBytes: -size},
			Parameters:    claim.Annotations, MutableParameters: claim.Labels,
			VolumeCapabilities: []*csi.VolumeCapability{{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_Mode(dice.Below(256))}}},
			AccessibilityRequirements: fuzzobj.Pick(dice, nil, &csi.TopologyRequirement{},
				&csi.TopologyRequirement{Preferred: []*csi.Topology{{Segments: claim.Labels}}}),
			VolumeContentSource: fuzzobj.Pick(dice, nil, &csi.VolumeContentSource{},
				&csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
					Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: handle},
				}}),
		}}
	}
	e := Entry{
		UID: "uid", Namespace: claim.Namespace, Name: claim.Name, Node: node,
		State: fuzzobj.Pick(dice, Requested, Discarding, "melting"), Handle: handle,
		Request: request(), Volume: volume, TopologyCut: dice.Below(2) == 1, CustodyBroken: dice.Below(2) == 1,
		Announced:  dice.Below(2) == 1,
		Secret:     fuzzobj.Pick(dice, nil, &Secret{Namespace: node, Name: node, UID: claim.UID}),
		Unresolved: fuzzobj.Pick(dice, nil, &Unresolved{Reason: "said twice", Since: size, Finish: dice.Below(2) == 1}),
	}
	for range dice.Below(3) {
		e.Superseded = append(e.Superseded, request())
		e.Superseded[len(e.Superseded)-1].TopologyCut = e.TopologyCut
	}
	e.Request.TopologyCut = e.TopologyCut
	return e
}
