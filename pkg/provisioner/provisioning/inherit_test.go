package provisioning

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// entryWith returns an entry of an earlier process with the reclaim policy.
func entryWith(policy v1.PersistentVolumeReclaimPolicy, state journal.State) journal.Entry {
	volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy}}
	return journal.Entry{State: state, Volume: volume}
}

func TestWhatInheritedEntriesProve(t *testing.T) {
	announced := entryWith(v1.PersistentVolumeReclaimRetain, journal.Requested)
	announced.Announced = true
	broken := announced
	broken.CustodyBroken = true
	approved := announced
	approved.Unresolved = &journal.Unresolved{Finish: true}
	discarding := entryWith(v1.PersistentVolumeReclaimDelete, journal.Discarding)
	discarding.Request.CreateVolumeRequest = &csi.CreateVolumeRequest{VolumeCapabilities: []*csi.VolumeCapability{{}}}
	for name, tc := range map[string]struct {
		entry     journal.Entry
		want      provision.Entry
		mayBeKept bool
	}{
		"requested":                          {entryWith(v1.PersistentVolumeReclaimRetain, journal.Requested), provision.Inherited, false},
		"announced":                          {announced, provision.Inherited, true},
		"being discarded":                    {discarding, provision.Inherited, false},
		"being discarded, request too large": {entryWith(v1.PersistentVolumeReclaimDelete, journal.Discarding), provision.InheritedDiscarding, false},
		"approved":                           {approved, provision.Inherited, false},
		"custody broken":                     {broken, provision.Untrusted, true},
	} {
		t.Run(name, func(t *testing.T) {
			var r claimRecord
			r.inherit(tc.entry, &v1.PersistentVolumeClaim{}, &plan{volume: tc.entry.Volume}, false)
			if r.entry.state != tc.want || r.mayBeKept() != tc.mayBeKept {
				t.Errorf("%v, may be kept: %t; want %v, %t", r.entry.state, r.mayBeKept(), tc.want, tc.mayBeKept)
			}
		})
	}
}

func TestNewerFactsThanEntryAreKept(t *testing.T) {
	approved := entryWith(v1.PersistentVolumeReclaimRetain, journal.Requested)
	approved.Unresolved = &journal.Unresolved{Finish: true}
	read := entryWith(v1.PersistentVolumeReclaimRetain, journal.Requested)
	for name, tc := range map[string]struct {
		before           claimRecord
		entry            journal.Entry
		kept, resumed    bool
		unresolvedBefore bool
	}{
		"nothing known":             {claimRecord{}, read, false, false, false},
		"nothing known, unresolved": {claimRecord{}, read, false, true, true},
		"nothing known, approved":   {claimRecord{}, approved, false, true, false},
		"own entry":                 {claimRecord{entry: entryFacts{state: provision.Durable}}, read, true, false, false},
		"own call without an entry": {claimRecord{request: requestFacts{creation: provision.Requested}}, read, true, false, false},
		"own entry, approved":       {claimRecord{entry: entryFacts{state: provision.Durable}}, approved, true, true, false},
		"resumed before":            {claimRecord{entry: entryFacts{state: provision.Inherited, resumed: true}}, read, true, true, false},
		"adopted entry, late duplicate": {claimRecord{entry: entryFacts{state: provision.Durable},
			request: requestFacts{creation: provision.Requested}}, read, true, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, inherited := tc.before, &plan{}
			r.inherit(tc.entry, &v1.PersistentVolumeClaim{}, inherited, tc.unresolvedBefore)
			if kept := r.request.plan != inherited; kept != tc.kept || r.entry.resumed != tc.resumed || kept &&
				(r.entry.state != tc.before.entry.state || r.request.creation != tc.before.request.creation) {
				t.Errorf("record %+v, want it kept: %v, resumed: %v", r, tc.kept, tc.resumed)
			}
		})
	}
}

// The process crashed between the two writes that move an entry to the unresolved ones.
func TestEntryInBothLeasesIsRemovedFromBoth(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	active := f.entries(journal.KindActive)[0]
	f.deleteClaim()
	f.must(f.store.MoveToUnresolved(t.Context(), active, "scripted"))
	f.must(f.store.Write(t.Context(), active))
	f.terms++
	f.restart()
	f.reconcileDeleted(false)
	f.expect(1, 1, 2, 0)
	if left := f.entries(journal.KindUnresolved); len(left) != 0 {
		t.Errorf("unresolved entries: %+v", left)
	}
}

func TestUnreadableEntryKeepsItsReason(t *testing.T) {
	f, _ := newDirectoryFlow(t)
	f.reconcile(false)
	entry := entryWith(v1.PersistentVolumeReclaimDelete, journal.Requested)
	entry.UID, entry.Namespace, entry.Name, entry.Volume.Name = "uid", "ns", "claim", "another"
	entry.Request = journal.Request{Payload: &journal.Payload{Kind: "File", Volume: "another", Data: []byte(`""`)}}
	f.inherit(t.Context(), []journal.Entry{entry})
	unresolved := f.entries(journal.KindUnresolved)
	if len(unresolved) != 1 || !strings.Contains(unresolved[0].Unresolved.Reason, "not a directory") {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}
