package journal_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	. "github.com/exeunt-io/exeunt/pkg/journal"
)

func TestShortenedRequestHasOnlyItsName(t *testing.T) {
	for name, tc := range map[string]struct {
		request Request
		want    bool
	}{
		"whole request":       {newEntry(1).Request, false},
		"name of a request":   {Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: "pvc-1"}}, true},
		"payload":             {Request{Payload: &Payload{Kind: "k", Volume: "pvc-1", Data: []byte(`{}`)}}, false},
		"payload of no data":  {Request{Payload: &Payload{Kind: "k", Volume: "pvc-1"}}, true},
		"payload and request": {Request{CreateVolumeRequest: newEntry(1).Request.CreateVolumeRequest, Payload: &Payload{Kind: "k", Volume: "pvc-1"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.request.IsShortened(); got != tc.want {
				t.Errorf("IsShortened = %t, want %t", got, tc.want)
			}
		})
	}
}
