package provisioning

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// factsAfterEvent are the fields of a claimRecord that an event of a PersistentVolume changes.
type factsAfterEvent struct {
	Creation                     provision.Creation
	Seen, Recorded, NameConflict bool
	Volume, Work                 bool
	Events                       int
}

func TestVolumeEventIsRecorded(t *testing.T) {
	const own, other = types.UID("uid"), types.UID("another")
	volume := &v1.PersistentVolume{}
	for name, tc := range map[string]struct {
		before claimRecord
		claim  types.UID
		want   factsAfterEvent
	}{
		"own volume, no entry": {claimRecord{}, own, factsAfterEvent{Seen: true, Recorded: true, Events: 1}},
		"own volume, entry": {claimRecord{entry: entryFacts{state: provision.Durable}}, own,
			factsAfterEvent{Seen: true, Recorded: true, Events: 1, Work: true}},
		"volume of another claim": {claimRecord{entry: entryFacts{state: provision.Durable},
			object: objectFacts{conflict: true}}, other, factsAfterEvent{Seen: true}},
		"volume without a claim":      {claimRecord{entry: entryFacts{state: provision.Durable}}, "", factsAfterEvent{Seen: true}},
		"own volume, conflict before": {claimRecord{object: objectFacts{conflict: true}}, own, factsAfterEvent{Seen: true, Recorded: true, Events: 1}},
		"created volume, unsaved": {claimRecord{request: requestFacts{creation: provision.Created},
			disk: diskFacts{volume: volume}, entry: entryFacts{state: provision.Durable}}, own,
			factsAfterEvent{Creation: provision.Requested, Seen: true, Recorded: true, Events: 1, Work: true}},
		"created volume, being discarded": {claimRecord{request: requestFacts{creation: provision.Created},
			disk: diskFacts{volume: volume}, entry: entryFacts{state: provision.Discarding}}, own,
			factsAfterEvent{Creation: provision.Created, Volume: true, Seen: true, Recorded: true, Events: 1, Work: true}},
		"doubtful request": {claimRecord{request: requestFacts{creation: provision.Doubtful},
			entry: entryFacts{state: provision.Durable}}, own,
			factsAfterEvent{Creation: provision.Doubtful, Seen: true, Recorded: true, Events: 1, Work: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			m.update(subject{uid: own, key: flowClaim}, "pvc-uid", func(r *claimRecord) { *r = tc.before })
			key, work := m.recordVolumeEvent("pvc-uid", tc.claim)
			r, _ := m.lookup(own)
			got := factsAfterEvent{r.request.creation, r.object.seen, r.object.recorded, r.object.conflict, r.disk.volume != nil,
				work, r.object.events}
			if diff := cmp.Diff(tc.want, got); diff != "" || key != flowClaim {
				t.Errorf("key %q, facts (-want +got):\n%s", key, diff)
			}
		})
	}
}

// The event may come while the entry is being written as discarding: such an entry is moved with its handle.
func TestVolumeEventKeepsHandleOfTheDisk(t *testing.T) {
	m := newMemory()
	m.update(subject{uid: "uid", key: flowClaim}, "pvc-uid", func(r *claimRecord) {
		r.request.creation, r.entry.state = provision.Created, provision.Durable
		r.disk = diskFacts{volume: &v1.PersistentVolume{}, handle: "handle", shown: "shown", unusable: "too small"}
	})
	m.recordVolumeEvent("pvc-uid", "uid")
	if r, _ := m.lookup("uid"); r.disk != (diskFacts{handle: "handle", shown: "shown"}) {
		t.Errorf("known of the disk is %+v", r.disk)
	}
}

func TestEventOfUnknownVolumeLeavesNoRecord(t *testing.T) {
	m := newMemory()
	if key, work := m.recordVolumeEvent("static", ""); key != "" || work || len(m.records) > 0 {
		t.Errorf("key %q, work %v, records %+v", key, work, m.records)
	}
}

func TestUnresolvedAnswerIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // with a clock that stands still
		for age, want := range map[time.Duration]bool{time.Hour: true, time.Hour - 1: false} {
			a := answerFacts{unresolved: "no answer", unresolvedAt: time.Now().Add(-age)}
			if got := a.isOverdue(time.Hour); got != want {
				t.Errorf("after %v: overdue %v, want %v", age, got, want)
			}
		}
		if (&answerFacts{}).isOverdue(time.Hour) {
			t.Error("overdue without a reason")
		}
	})
}

func TestWrittenVolumeIsAwaitedUntilSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		object objectFacts
		want   bool
	}{
		"never written":  {objectFacts{}, false},
		"written":        {objectFacts{savedAt: time.Now()}, true},
		"written, shown": {objectFacts{savedAt: time.Now(), seen: true}, false},
	} {
		if got := tc.object.isAwaited(); got != tc.want {
			t.Errorf("%s: awaited %v, want %v", name, got, tc.want)
		}
	}
}
