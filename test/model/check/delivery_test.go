package check_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	. "github.com/exeunt-io/exeunt/test/model/check"
)

// Watches of several kinds deliver in any order.
func TestOrderOfDeliveryDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		v, c := volumeNamed(name, handle, claimUID), claimNamed("claim", claimUID, name)
		released := v.DeepCopy()
		released.Status.Phase = v1.VolumeReleased
		v.ResourceVersion, c.ResourceVersion, released.ResourceVersion = "9", "10", "11"
		gone := c.DeepCopy()
		gone.ResourceVersion = "12"
		events := []func(*History){
			func(h *History) { h.Observe(at(1), watch.Added, v) },
			func(h *History) { h.Observe(at(1), watch.Added, c) },
			func(h *History) { h.Observe(at(30), watch.Modified, released) },
			func(h *History) { h.Observe(at(30), watch.Deleted, gone) },
			func(h *History) { h.Observe(at(30), watch.Bookmark, gone) },
			func(h *History) {
				h.Requested(Request{Actor: PVController, Resource: "persistentvolumes", Name: name, Began: at(10), Ended: at(11)})
			},
		}
		random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		h := &History{}
		for _, event := range events {
			event(h)
		}
		if got := rulesOf(t, h.Violations()); !slices.Equal(got, []Rule{ReleasedEarly}) {
			t.Fatalf("broken rules are %v", got)
		}
	}
}

// Without requests, only lists tell that a late event was not written earlier.
func TestListBoundsLateEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		listed func(*History)
		want   []Rule
	}{
		"no list":                     {func(*History) {}, nil},
		"list before the call":        {func(h *History) { h.Listed(at(9), "10") }, nil},
		"list after the call":         {func(h *History) { h.Listed(at(12), "10") }, []Rule{DataLost}},
		"list that has the deletion":  {func(h *History) { h.Listed(at(12), "12") }, nil},
		"list of another etcd, later": {func(h *History) { h.Resumed(true); h.Listed(at(12), "10") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := &History{}
			v, c := volumeNamed("pv", handle, claimUID), claimNamed("claim", claimUID, "pv")
			v.ResourceVersion, c.ResourceVersion = "9", "10"
			h.Observe(at(1), watch.Added, v)
			h.Observe(at(1), watch.Added, c)
			gone := c.DeepCopy()
			gone.ResourceVersion = "12"
			h.Observe(at(40), watch.Deleted, gone)
			h.Called(Record{Actor: Provisioner, Kind: DeleteVolume, Handle: handle, Began: at(10), Ended: at(11)})
			tc.listed(h)
			if got := rulesOf(t, h.Violations()); !slices.Equal(got, tc.want) {
				t.Errorf("broken rules are %v, want %v", got, tc.want)
			}
		})
	}
}

func TestClaimInUseKeepsItsProtection(t *testing.T) {
	for name, tc := range map[string]struct {
		scheduled float64 // when the pod was scheduled
		want      []Rule
	}{
		"pod since long ago":          {5, []Rule{ChangedDeletionOrder}},
		"pod since the list of pods":  {9.5, nil},
		"pod scheduled after the end": {12, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded()
			user := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
			user.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
			schedule := func() {
				user = user.DeepCopy()
				user.Spec.NodeName, user.ResourceVersion = "node", r.next()
				r.request(tc.scheduled, "", "pods", "ns", "pod")
				r.Observe(at(tc.scheduled+0.2), watch.Modified, user)
			}
			user.ResourceVersion = r.next()
			r.Observe(at(5.4), watch.Added, user)
			if tc.scheduled < 10 {
				schedule()
			}
			r.deleteClaim(10, 0.3)
			if tc.scheduled > 10 {
				schedule()
			}
			if got := rulesOf(t, r.Violations()); !slices.Equal(got, tc.want) {
				t.Errorf("broken rules are %v, want %v", got, tc.want)
			}
		})
	}
}

func TestHistoryAtRest(t *testing.T) {
	stored := []Disk{{Handle: handle, Name: name}}
	for name, tc := range map[string]struct {
		happens func(*run)
		disks   []Disk
		want    []Rule
	}{
		"bound claim":                           {func(*run) {}, stored, nil},
		"its disk is gone":                      {func(*run) {}, nil, []Rule{DiskMissing}},
		"reclaimed":                             {func(r *run) { r.reclaim(10) }, nil, nil},
		"its disk is left":                      {func(r *run) { r.reclaim(10) }, stored, []Rule{Leaked}},
		"the driver lied":                       {func(r *run) { r.reclaim(10); r.GaveUp(handle) }, stored, nil},
		"Retain volume is gone":                 {func(r *run) { r.writeVolume(7, "", retained); r.reclaim(10) }, stored, nil},
		"claim is gone":                         {func(r *run) { r.deleteClaim(10, 0.2) }, stored, []Rule{Unreclaimed, WrongPhase}},
		"entry is left":                         {func(r *run) { r.lease(10, "journal", true) }, stored, []Rule{EntryLeft}},
		"etcd was restored without the objects": {func(r *run) { r.Resumed(true) }, stored, []Rule{Leaked}},
		"etcd was restored with the objects": {func(r *run) {
			r.Resumed(true)
			r.volume.ResourceVersion, r.claim.ResourceVersion = "1", "2"
			r.Observe(at(20), watch.Added, r.volume)
			r.Observe(at(20), watch.Added, r.claim)
		}, stored, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded()
			tc.happens(r)
			if got := rulesOf(t, r.AtRest(tc.disks, Wanted{Driver: driver, Honor: true})); !slices.Equal(got, tc.want) {
				t.Errorf("broken rules are %v, want %v", got, tc.want)
			}
		})
	}
}

// A long record is replayed by groups of objects that refer to each other.
func TestLongHistoryIsReplayed(t *testing.T) {
	h := &History{Honor: true}
	revision := 0
	next := func() string { revision++; return at(float64(revision)).Format("20060102150405") }
	for i := range 500 {
		id := next()
		v, c := volumeNamed("pvc-"+id, "handle-"+id, types.UID(id)), claimNamed("claim-"+id, types.UID(id), "pvc-"+id)
		c.ResourceVersion, v.ResourceVersion = next(), next()
		h.Observe(at(float64(i)), watch.Added, c)
		h.Observe(at(float64(i)), watch.Added, v)
		if i%100 == 0 {
			h.Called(Record{Actor: Provisioner, Kind: DeleteVolume, Handle: "handle-" + id, Began: at(1000), Ended: at(1001)})
		}
	}
	if got := rulesOf(t, h.Violations()); !slices.Equal(got, slices.Repeat([]Rule{DataLost}, 5)) {
		t.Errorf("broken rules are %v", got)
	}
}
