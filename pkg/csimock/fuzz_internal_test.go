package csimock

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
)

// A state file that can be read is the same after it was written and read again.
func FuzzStateFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"driver":"d","sequence":2,"volumes":[{"id":"v","name":"n","sequence":1,"capacity":1}],"snapshots":[],"groups":null}`))
	f.Add([]byte(`{"version":1,"driver":"d","sequence":9,"snapshots":[{"id":"s","name":"n","sequence":3}],"groups":[{"id":"g","name":"n","sequence":4,"snapshots":["s"]}]}`))
	f.Add([]byte(`{"version":1,"driver":"d","volumes":[null]}`))
	f.Add([]byte(`{"version":2}{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := decodeState(data, "d")
		if err != nil {
			return
		}
		first.version = 1
		_, text, err := first.encode("d", 0)
		if err != nil {
			t.Fatalf("read, but not written: %v", err)
		}
		second, err := decodeState(text, "d")
		if err != nil {
			t.Fatalf("written, but not read: %v\n%s", err, text)
		}
		second.version = 1
		if _, again, err := second.encode("d", 0); err != nil || !bytes.Equal(text, again) {
			t.Errorf("written the second time (%v):\n%s", err, cmp.Diff(string(text), string(again)))
		}
		if len(second.volumes.sorted()) != len(first.volumes.sorted()) || second.sequence != first.sequence {
			t.Errorf("%d volumes, after a round trip %d", len(first.volumes.sorted()), len(second.volumes.sorted()))
		}
	})
}

// A fault that is accepted has an effect on a known method; conditions are accepted only with
// a known type; a code is found by its name.
func FuzzFaultFile(f *testing.F) {
	f.Add([]byte(`{"method":"CreateVolume","code":"UNAVAILABLE","times":2,"latency":"3s"}`))
	f.Add([]byte(`{"method":"ListVolumes","response":"Twice"}`))
	f.Add([]byte(`{"method":"DeleteVolume","latency":"-1ns"}`))
	f.Add([]byte(`{"volume":"v","type":"DATA_LOSS","message":"m"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if fault, err := parseFault(data); err == nil {
			acts := fault.Code != codes.OK || fault.Latency > 0 || fault.Hang || fault.Disconnect || fault.Response != ""
			if !acts || fault.Method == "" || fault.Times < 0 || fault.Latency < 0 {
				t.Errorf("fault %+v is accepted", fault)
			}
			if code, err := parseCode(fault.Code.String()); code != fault.Code || err != nil {
				t.Errorf("code %v is read as %v, %v", fault.Code, code, err)
			}
		}
		var entry HealthEntry
		if err := decodeStrict(data, &entry); err != nil || entry.validate() != nil {
			return
		}
		text, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		var again HealthEntry
		if err := decodeStrict(text, &again); err != nil || !cmp.Equal(entry, again) {
			t.Errorf("condition %+v is %+v after a round trip (%v)", entry, again, err)
		}
	})
}

// An endpoint that is accepted is a path; a window is within the listing; capabilities are known.
func FuzzArguments(f *testing.F) {
	f.Add("unix:///run/csi.sock", int32(1), uint64(3))
	f.Add("after-3", int32(-1), uint64(3))
	f.Add(" CREATE_DELETE_VOLUME", int32(0), uint64(1<<63))
	f.Fuzz(func(t *testing.T, text string, limit int32, last uint64) {
		if path, err := socketPath(text); err == nil && (path == "" || strings.HasPrefix(path, "unix:")) {
			t.Errorf("socket of %q is %q", text, path)
		}
		w, err := parseWindow(text, limit, last)
		if err == nil && (w.after > last || w.limit < 0) {
			t.Errorf("window of %q, %d, %d is %+v", text, limit, last, w)
		}
		if parsed, err := ParseCapabilities([]string{text}); err == nil && (len(parsed) != 1 || string(parsed[0]) != strings.TrimSpace(text)) {
			t.Errorf("capability %q is read as %q", text, parsed)
		}
	})
}
