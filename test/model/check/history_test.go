package check_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/test/model/check"
)

// at is a moment of the recorded run.
func at(seconds float64) time.Time {
	return time.Unix(1_700_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// run records what happens to one claim and its volume. Requests take 0.1 s and are observed
// 0.2 s after their begin.
type run struct {
	*History
	revision int
	volume   *v1.PersistentVolume
	claim    *v1.PersistentVolumeClaim
}

// recorded is a run in which the provisioner created a disk at 1 s and the claim is bound to
// it at 5 s.
func recorded() *run {
	r := &run{
		History: &History{Reach: time.Second, Honor: true, Journaled: true},
		volume:  volumeNamed(name, handle, claimUID), claim: claimNamed("claim", claimUID, ""),
	}
	r.claim.Status.Phase, r.claim.Annotations = v1.ClaimPending, nil
	r.writeClaim(0.1, "")
	r.lease(0.5, "journal", true)
	r.Called(Record{Actor: Provisioner, Kind: CreateVolume, Handle: handle, Name: name, OK: true, Began: at(1),
		Ended: at(1.5)})
	r.writeVolume(2, Provisioner, func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumePending })
	r.lease(3, "journal", false)
	r.writeVolume(4, PVController, func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeBound })
	r.claim.Spec.VolumeName, r.claim.Status.Phase = name, v1.ClaimBound
	r.writeClaim(5, PVController)
	return r
}

func (r *run) next() string {
	r.revision += 10
	return strconv.Itoa(r.revision)
}

func (r *run) request(seconds float64, actor Actor, resource, namespace, name string) {
	r.Requested(Request{Actor: actor, Resource: resource, Namespace: namespace, Name: name, Began: at(seconds),
		Ended: at(seconds + 0.1)})
}

func (r *run) writeVolume(seconds float64, actor Actor, change func(*v1.PersistentVolume)) {
	r.volume = r.volume.DeepCopy()
	change(r.volume)
	r.volume.ResourceVersion = r.next()
	r.request(seconds, actor, "persistentvolumes", "", name)
	r.Observe(at(seconds+0.2), watch.Modified, r.volume)
}

func (r *run) writeClaim(seconds float64, actor Actor) {
	r.claim = r.claim.DeepCopy()
	r.claim.ResourceVersion = r.next()
	r.request(seconds, actor, "persistentvolumeclaims", "ns", "claim")
	r.Observe(at(seconds+0.2), watch.Modified, r.claim)
}

// deleteClaim is a deletion that pv-controller finishes, observed late by that many seconds.
func (r *run) deleteClaim(seconds, late float64) {
	r.claim = r.claim.DeepCopy()
	r.claim.ResourceVersion, r.claim.DeletionTimestamp = r.next(), &metav1.Time{}
	r.request(seconds, "", "persistentvolumeclaims", "ns", "claim")
	r.Observe(at(seconds+0.2), watch.Modified, r.claim)
	gone := r.claim.DeepCopy()
	gone.ResourceVersion = r.next()
	r.request(seconds+0.5, PVController, "persistentvolumeclaims", "ns", "claim")
	r.Observe(at(seconds+0.5+late), watch.Deleted, gone)
}

func (r *run) deleteDisk(began, ended float64) { r.deleteDiskBy(Provisioner, began, ended) }

func (r *run) deleteDiskBy(actor Actor, began, ended float64) {
	r.Called(Record{Actor: actor, Kind: DeleteVolume, Handle: handle, OK: true, Began: at(began), Ended: at(ended)})
}

// lease writes a Lease of the journal, with or without the entry of the claim.
func (r *run) lease(seconds float64, kind string, has bool) {
	entries := map[types.UID]string{}
	if has {
		v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		request := journal.Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: name}}
		text, err := journal.Encode(journal.Entry{UID: claimUID, Namespace: "ns", Name: "claim", Volume: v, Request: request})
		if err != nil {
			panic(err)
		}
		entries[claimUID] = text
	}
	lease := journal.Journal{Namespace: "system", Driver: driver}.Lease(journal.KindActive, 0, "holder", journal.Custody{},
		entries)
	lease.Name, lease.ResourceVersion = kind, r.next()
	r.request(seconds, Provisioner, "leases", "system", kind)
	r.Observe(at(seconds+0.2), watch.Modified, lease)
}

func release(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeReleased }

func retained(v *v1.PersistentVolume) {
	v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
}

// reclaim is the way a volume goes after its claim.
func (r *run) reclaim(began float64) {
	r.deleteClaim(began, 0.2)
	r.writeVolume(began+1, PVController, release)
	r.deleteDisk(began+4, began+5)
	r.writeVolume(began+6, Provisioner, func(v *v1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} })
	r.writeVolume(began+6.5, PVController, func(v *v1.PersistentVolume) { v.Finalizers = v.Finalizers[1:] })
	gone := r.volume.DeepCopy()
	gone.ResourceVersion, gone.Finalizers = r.next(), nil
	r.request(began+7, Provisioner, "persistentvolumes", "", name)
	r.Observe(at(began+7.2), watch.Deleted, gone)
}

var historyCases = map[string]struct {
	happens func(*run)
	want    []Rule
}{
	"bound claim":   {func(*run) {}, nil},
	"reclaimed":     {func(r *run) { r.reclaim(10) }, nil},
	"deleted twice": {func(r *run) { r.reclaim(10); r.deleteDisk(20, 21) }, nil},
	"disk of a bound claim is deleted": {func(r *run) { r.deleteDisk(10, 11) },
		[]Rule{DataLost}},
	"claim goes while the call is open":       {func(r *run) { r.deleteDisk(10, 11); r.deleteClaim(10.5, 0.2) }, nil},
	"claim is seen to be gone too late":       {func(r *run) { r.deleteClaim(9, 20); r.writeVolume(9.7, PVController, release); r.deleteDisk(10, 11) }, nil},
	"claim is bound until after the call":     {func(r *run) { r.deleteDisk(10, 11); r.deleteClaim(12, 20) }, []Rule{DataLost}},
	"policy changes within reach of the call": {func(r *run) { r.reclaimAfter(retained, 9.5) }, nil},
	"policy changed before":                   {func(r *run) { r.reclaimAfter(retained, 7) }, []Rule{DataLost}},
	"policy changed while a program paused":   {func(r *run) { r.Paused(at(6.5), at(9.5)); r.reclaimAfter(retained, 7) }, nil},
	"Released is seen before the claim is gone": {func(r *run) {
		r.deleteClaim(7, 20)
		r.writeVolume(8, PVController, release)
	}, nil},
	"Released while the claim is bound": {func(r *run) { r.writeVolume(7, PVController, release) }, []Rule{ReleasedEarly}},
	"a user sets Released":              {func(r *run) { r.writeVolume(7, "", release) }, nil},
	"a user may have set Released": {func(r *run) {
		r.request(6.9, "", "persistentvolumes", "", name)
		r.writeVolume(7, PVController, release)
	}, nil},
	"a user wrote another version": {func(r *run) {
		r.Requested(Request{Resource: "persistentvolumes", Name: name, Version: "1000", Began: at(6.9), Ended: at(7.1)})
		r.writeVolume(7, PVController, release)
	}, []Rule{ReleasedEarly}},
	"versions before are missing":      {func(r *run) { r.Resumed(false); r.writeVolume(7, PVController, release) }, nil},
	"call while nothing was observed":  {func(r *run) { r.Unobserved(at(10.5), at(12)); r.deleteDisk(10, 11) }, nil},
	"call after nothing was observed":  {func(r *run) { r.Unobserved(at(8), at(9)); r.deleteDisk(10, 11) }, []Rule{DataLost}},
	"write while nothing was observed": {func(r *run) { r.Unobserved(at(7), at(8)); r.writeVolume(7, PVController, release) }, nil},
	"requests are unknown":             {func(r *run) { r.volume.ResourceVersion = ""; r.observeOnly(7) }, nil},
	"finalizer goes while the disk exists": {func(r *run) {
		r.writeVolume(7, Provisioner, func(v *v1.PersistentVolume) { v.Finalizers = v.Finalizers[:1] })
	}, []Rule{FinalizerRemovedEarly}},
	"disk may be gone by then":                   {func(r *run) { r.unprotectDuringDeletion() }, nil},
	"entry goes, the volume is not there":        {func(r *run) { r.second(func() {}) }, []Rule{Forgotten, EntryRemovedEarly}},
	"entry moves to another Lease":               {func(r *run) { r.second(func() { r.secondLease(21.5, "unresolved", true) }) }, nil},
	"disk without an entry":                      {func(r *run) { r.create(20, "handle-2", "pvc-uid-2") }, []Rule{CreatedUnwanted, CreatedWithoutEntry}},
	"CreateVolume again for one disk":            {func(r *run) { r.create(8, handle, name) }, nil},
	"disk of a bound claim is deleted by a user": {func(r *run) { r.deleteDiskBy("", 10, 11) }, nil},
	"second disk, a user deleted the first": {func(r *run) {
		r.deleteDiskBy("", 6, 6.5)
		r.lease(7, "journal", true)
		r.deleteClaim(7.5, 0.2)
		r.create(8.5, "handle-2", name)
		r.lease(9, "journal", false)
	}, nil},
	"second disk of the name":               {func(r *run) { r.create(8, "handle-2", name) }, []Rule{CreatedTwice, CreatedForBound, CreatedWithoutEntry}},
	"call without effect":                   {func(r *run) { r.create(8, "", name) }, nil},
	"user takes the finalizer, object goes": {func(r *run) { r.stripped("") }, nil},
	"Retain after DeleteVolume":             {func(r *run) { r.retainedObject(true, true, 12) }, nil},
	"Retain before a failed DeleteVolume":   {func(r *run) { r.retainedObject(true, false, 12) }, []Rule{ObjectDeleted}},
	"Retain, DeleteVolume was never called": {func(r *run) { r.retainedObject(false, false, 12) }, []Rule{ObjectDeleted}},
	"Retain within reach of the deletion":   {func(r *run) { r.retainedObject(false, false, 14.5) }, []Rule{ObjectDeleted}},
	"admission policy adds the finalizer":   {func(r *run) { r.admitted(true, func(*v1.PersistentVolume) {}) }, nil},
	"admission policy, Released": {func(r *run) {
		r.deleteClaim(6, 0.2)
		r.admitted(true, func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeReleased })
	}, nil},
	"no admission policy":             {func(r *run) { r.admitted(false, func(*v1.PersistentVolume) {}) }, []Rule{ForeignFinalizer, FinalizerMisplaced}},
	"admission policy, policy Retain": {func(r *run) { r.admitted(true, retained) }, []Rule{ForeignFinalizer, FinalizerMisplaced, PolicyChanged}},
	"admission policy, not Bound": {func(r *run) {
		r.admitted(true, func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumePending })
	}, []Rule{ForeignFinalizer, FinalizerMisplaced}},
	"admission policy, another finalizer too": {func(r *run) {
		r.admitted(true, func(v *v1.PersistentVolume) { v.Finalizers = append(v.Finalizers, foreign) })
	}, []Rule{ForeignFinalizer}},
	"admission policy, a later write": {func(r *run) {
		r.admitted(true, func(*v1.PersistentVolume) {})
		r.writeVolume(9, PVController, func(v *v1.PersistentVolume) { v.Finalizers = v.Finalizers[:1] })
	}, []Rule{ForeignFinalizer}},
	"object goes without its finalizer": {func(r *run) { r.stripped(Provisioner) }, []Rule{Forgotten, FinalizerRemovedEarly}},
}

// reclaimAfter deletes the disk at 10 s after a user's change of the volume.
func (r *run) reclaimAfter(change func(*v1.PersistentVolume), seconds float64) {
	r.deleteClaim(6, 0.2)
	r.writeVolume(6.7, PVController, release)
	r.writeVolume(seconds, "", change)
	r.deleteDisk(10, 11)
}

func (r *run) observeOnly(seconds float64) {
	v := r.volume.DeepCopy()
	v.Status.Phase, v.ResourceVersion = v1.VolumeReleased, r.next()
	r.Observe(at(seconds), watch.Modified, v)
}

func (r *run) unprotectDuringDeletion() {
	r.deleteClaim(6, 0.2)
	r.writeVolume(7, PVController, release)
	r.deleteDisk(9.05, 10)
	r.writeVolume(9, Provisioner, func(v *v1.PersistentVolume) { v.Finalizers = v.Finalizers[:1] })
}

// retainedObject has the provisioner delete a released volume at 15 s, after a user set the
// policy Retain at that many seconds. deleted: DeleteVolume was called before.
func (r *run) retainedObject(deleted, ok bool, seconds float64) {
	r.deleteClaim(6, 0.2)
	r.writeVolume(7, PVController, release)
	if deleted {
		r.Called(Record{Actor: Provisioner, Kind: DeleteVolume, Handle: handle, OK: ok, Began: at(9), Ended: at(10)})
	}
	r.writeVolume(seconds, "", retained)
	r.writeVolume(15, Provisioner, func(v *v1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} })
}

// admitted is a run in which pv-controller writes a volume, and the admission policy adds
// the finalizer of the provisioner in the same write.
func (r *run) admitted(applied bool, change func(*v1.PersistentVolume)) {
	r.Admission = applied
	r.writeVolume(7, "", func(v *v1.PersistentVolume) { v.Finalizers, v.Status.Phase = v.Finalizers[:1], v1.VolumeAvailable })
	r.writeVolume(8, PVController, func(v *v1.PersistentVolume) {
		v.Finalizers, v.Status.Phase = append(slices.Clip(v.Finalizers), string(finalizer.External)), v1.VolumeBound
		change(v)
	})
}

// second creates a disk for a claim that is gone, and removes its entry.
func (r *run) second(between func()) {
	r.secondLease(20, "journal", true)
	r.create(20.5, "handle-2", "pvc-"+secondUID)
	between()
	r.secondLease(22, "journal", false)
}

const secondUID = "00000000-0000-0000-0000-000000000002"

func (r *run) secondLease(seconds float64, kind string, has bool) {
	entries := map[types.UID]string{}
	if has {
		v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + secondUID}}
		request := journal.Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: v.Name}}
		entries[secondUID], _ = journal.Encode(journal.Entry{UID: secondUID, Namespace: "ns", Name: "two", Volume: v,
			Request: request})
	}
	lease := journal.Journal{Namespace: "system", Driver: driver}.Lease(journal.KindActive, 0, "holder", journal.Custody{},
		entries)
	lease.Name, lease.ResourceVersion = kind, r.next()
	r.request(seconds, Provisioner, "leases", "system", kind)
	r.Observe(at(seconds+0.2), watch.Modified, lease)
}

func (r *run) create(began float64, handle, name string) {
	r.Called(Record{Actor: Provisioner, Kind: CreateVolume, Handle: handle, Name: name, OK: true, Began: at(began),
		Ended: at(began + 0.5)})
}

// stripped deletes the volume; actor removes the finalizer of the provisioner, and then
// pv-controller its own.
func (r *run) stripped(actor Actor) {
	r.writeVolume(6, "", func(v *v1.PersistentVolume) { v.DeletionTimestamp = &metav1.Time{} })
	r.writeVolume(7, actor, func(v *v1.PersistentVolume) { v.Finalizers = v.Finalizers[:1] })
	r.deleteClaim(8, 0.2)
	gone := r.volume.DeepCopy()
	gone.ResourceVersion, gone.Finalizers = r.next(), nil
	r.request(9, PVController, "persistentvolumes", "", name)
	r.Observe(at(9.2), watch.Deleted, gone)
}

func TestHistory(t *testing.T) {
	for name, tc := range historyCases {
		t.Run(name, func(t *testing.T) {
			r := recorded()
			tc.happens(r)
			if got := rulesOf(t, r.Violations()); !slices.Equal(got, tc.want) {
				t.Errorf("broken rules are %v, want %v", got, tc.want)
			}
		})
	}
}
