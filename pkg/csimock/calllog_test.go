package csimock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// timeless compares calls without the clock.
var timeless = cmpopts.IgnoreFields(csimock.Call{}, "Time", "DurationMS")

func TestCallLogHasEveryCallInOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	server, driver := start(t, csimock.Config{CallLog: file})
	began := time.Now()
	if _, err := driver.Probe(t.Context(), &csi.ProbeRequest{}); err != nil {
		t.Fatal(err)
	}
	id := create(t, driver, volumeRequest("one"))
	snapshot := takeSnapshot(t, driver, "snapshot", id)
	_, _ = driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{}) // refused, and logged as such
	_, _ = driver.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: snapshot})
	deleteVolume(t, driver, id)
	want := []csimock.Call{
		{Seq: 1, Method: "Probe", Code: "OK"},
		{Seq: 2, Method: "CreateVolume", Volume: id, Name: "one", Code: "OK", Volumes: 1},
		{Seq: 3, Method: "CreateSnapshot", Volume: id, Snapshot: snapshot, Name: "snapshot", Code: "OK", Volumes: 1},
		{Seq: 4, Method: "DeleteVolume", Code: "InvalidArgument", Volumes: 1},
		{Seq: 5, Method: "DeleteSnapshot", Snapshot: snapshot, Code: "OK", Volumes: 1},
		{Seq: 6, Method: "DeleteVolume", Volume: id, Code: "OK"},
	}
	if diff := cmp.Diff(want, server.Calls(), timeless); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	written, err := csimock.ReadCalls(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, written, timeless); diff != "" {
		t.Errorf("calls in the file (-want +got):\n%s", diff)
	}
	if got := written[0].Time; got.Before(began) || got.After(time.Now()) {
		t.Errorf("the first call finished at %v", got)
	}
}

// A client with a response finds the line of the call and its count of volumes.
func TestCallIsLoggedBeforeItsResponse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	_, driver := start(t, csimock.Config{CallLog: file})
	var calls errgroup.Group
	for i := range 50 {
		calls.Go(func() error {
			response, err := driver.CreateVolume(t.Context(), volumeRequest(fmt.Sprintf("volume-%d", i)))
			if err != nil {
				return err
			}
			written, err := csimock.ReadCalls(file)
			if err != nil {
				return err
			}
			for seq, call := range written {
				if call.Seq != uint64(seq+1) {
					return fmt.Errorf("line %d is call %d", seq+1, call.Seq)
				}
				if call.Volume == response.GetVolume().GetVolumeId() {
					return nil
				}
			}
			return fmt.Errorf("volume %s is not in the log", response.GetVolume().GetVolumeId())
		})
	}
	if err := calls.Wait(); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreNotStored(t *testing.T) {
	directory := t.TempDir()
	_, driver := start(t, csimock.Config{CallLog: filepath.Join(directory, "calls.jsonl"),
		StateFile: filepath.Join(directory, "state.json")})
	request := volumeRequest("one")
	request.Secrets = map[string]string{"password": "swordfish"}
	request.Parameters = map[string]string{"tier": "platinum"}
	create(t, driver, request)
	for file, words := range map[string][]string{"calls.jsonl": {"swordfish", "password", "platinum", "tier"},
		"state.json": {"swordfish", "password"}} {
		content, err := os.ReadFile(filepath.Join(directory, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if strings.Contains(string(content), word) {
				t.Errorf("%s contains %q", file, word)
			}
		}
	}
}

func TestReadCalls(t *testing.T) {
	for name, tc := range map[string]struct {
		content string
		calls   int
		fails   bool
	}{
		"incomplete last line": {"{\"seq\":1}\n{\"seq\":2", 1, false},
		"line without JSON":    {"{\"seq\":1}\nhello\n", 0, true},
		"empty file":           {"", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "calls.jsonl")
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			calls, err := csimock.ReadCalls(file)
			if len(calls) != tc.calls || (err != nil) != tc.fails {
				t.Errorf("ReadCalls gives %v (%v), want %d calls", calls, err, tc.calls)
			}
		})
	}
}
