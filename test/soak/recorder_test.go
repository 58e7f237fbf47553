package main

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// The source of a clone may be deleted with the claim of the clone: the driver refuses its request
// for ever, and only an unresolved entry is left.
func TestUnresolvedEntryMayBeLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		kind       journal.Kind
		unresolved *journal.Unresolved
		broken     bool
	}{
		"open":       {journal.KindActive, nil, true},
		"unresolved": {journal.KindUnresolved, &journal.Unresolved{Reason: "the source is gone", Since: 17}, false},
	} {
		t.Run(name, func(t *testing.T) {
			const uid = types.UID("00000000-0000-0000-0000-000000000001")
			own := journal.Journal{Namespace: "exeunt-system", Driver: "example.com"}
			volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(uid)}}
			text, err := journal.Encode(journal.Entry{
				UID: uid, Namespace: "soak", Name: "clone", Volume: volume, Unresolved: tc.unresolved,
				Request: journal.Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: volume.Name}},
			})
			if err != nil {
				t.Fatal(err)
			}
			lease := own.Lease(tc.kind, 0, "holder", journal.Custody{}, map[types.UID]string{uid: text})
			lease.ResourceVersion = "7"
			r := newRecorder(false, true)
			r.observe(lease, false)
			found := strings.Join(r.broken(nil, own.Driver), "\n")
			if strings.Contains(found, "EntryLeft") != tc.broken {
				t.Errorf("broken: %q", found)
			}
		})
	}
}
