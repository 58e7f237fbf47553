package audit

import (
	"encoding/json"
	"strings"
	"testing"
)

// A file either fails, or names each volume once, with a handle. The same volumes as an
// array are read in the same order.
func FuzzVolumesFile(f *testing.F) {
	f.Add(`[{"handle":"v1","size":"10Gi","creationTime":"2030-01-01T00:00:00Z","nodes":["n"]},{"handle":"v2","size":5}]`)
	f.Add(`{"entries":[{"volume":{"volumeId":"v","capacityBytes":"1","volumeContext":{"name":"pvc-1"}},"status":{"publishedNodeIds":[]}}],"nextToken":""}`)
	f.Add(`{"nextToken":"more","volumes":[]}`)
	f.Add(`{"volumes":[],"entries":[]}`)
	f.Add(`[{"handle":"v","size":"1e99"}] {}`)
	f.Add("[")
	f.Fuzz(func(t *testing.T, text string) {
		var handles []string
		seen := map[string]bool{}
		err := readVolumes(strings.NewReader(text), func(volume Volume) {
			if volume.Handle == "" || seen[volume.Handle] {
				t.Errorf("handle %q has no text, or is listed twice", volume.Handle)
			}
			seen[volume.Handle] = true
			handles = append(handles, volume.Handle)
		})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a text")
			}
			return
		}
		list := []map[string]string{}
		for _, handle := range handles {
			list = append(list, map[string]string{"handle": handle})
		}
		again, err := json.Marshal(map[string]any{"volumes": list})
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		if err := readVolumes(strings.NewReader(string(again)), func(volume Volume) {
			if at >= len(handles) || volume.Handle != handles[at] {
				t.Errorf("volume %d is %q", at, volume.Handle)
			}
			at++
		}); err != nil || at != len(handles) {
			t.Errorf("of %d volumes %d are read again: %v", len(handles), at, err)
		}
	})
}
