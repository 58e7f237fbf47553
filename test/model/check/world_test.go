package check_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/enumtest"
	. "github.com/exeunt-io/exeunt/test/model/check"
)

const (
	driver   = "csi.example.com"
	claimUID = types.UID("uid-1")
	name     = "pvc-uid-1"
	handle   = "handle-1"
)

var epoch metav1.Time

// edit changes a snapshot whose objects nobody else has.
type edit func(*Snapshot)

// bound returns a cluster with one claim, bound to a volume that was provisioned for it.
func bound(edits ...edit) *Snapshot {
	s := &Snapshot{
		Volumes: []*v1.PersistentVolume{volumeNamed(name, handle, claimUID)},
		Claims:  []*v1.PersistentVolumeClaim{claimNamed("claim", claimUID, name)},
		Disks:   []Disk{{Handle: handle, Name: name}},
	}
	for _, change := range edits {
		change(s)
	}
	return s
}

func volumeNamed(name, handle string, claim types.UID) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("volume-" + name),
			Annotations: map[string]string{storage.AnnDynamicallyProvisioned: driver},
			Finalizers:  []string{string(finalizer.VolumeProtection), string(finalizer.External)},
		},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver,
				VolumeHandle: handle}},
			ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: claim},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
	}
}

func claimNamed(name string, uid types.UID, volume string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: uid, Annotations: map[string]string{storage.AnnBindCompleted: "yes"},
			Finalizers: []string{string(finalizer.ClaimProtection)},
		},
		Spec:   v1.PersistentVolumeClaimSpec{VolumeName: volume},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
}

// volume changes the first volume.
func volume(change func(*v1.PersistentVolume)) edit {
	return func(s *Snapshot) { change(s.Volumes[0]) }
}

// claim changes the first claim.
func claim(change func(*v1.PersistentVolumeClaim)) edit {
	return func(s *Snapshot) { change(s.Claims[0]) }
}

func noVolume(s *Snapshot) { s.Volumes = s.Volumes[1:] }
func noClaim(s *Snapshot)  { s.Claims = s.Claims[1:] }
func noDisk(s *Snapshot)   { s.Disks = s.Disks[1:] }
func noEntry(s *Snapshot)  { s.Entries = s.Entries[1:] }

func phase(phase v1.PersistentVolumePhase) edit {
	return volume(func(v *v1.PersistentVolume) { v.Status.Phase = phase })
}

func policy(policy v1.PersistentVolumeReclaimPolicy) edit {
	return volume(func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = policy })
}

func deleting(s *Snapshot) { s.Volumes[0].DeletionTimestamp = &metav1.Time{} }

func claimDeleting(s *Snapshot) { s.Claims[0].DeletionTimestamp = &metav1.Time{} }

func finalizers(list ...string) edit {
	return volume(func(v *v1.PersistentVolume) { v.Finalizers = list })
}

func claimFinalizers(list ...string) edit {
	return claim(func(c *v1.PersistentVolumeClaim) { c.Finalizers = list })
}

func claimRef(uid types.UID) edit {
	return volume(func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = uid })
}

// released is a volume whose claim is gone.
func released(s *Snapshot) {
	noClaim(s)
	phase(v1.VolumeReleased)(s)
}

// pending is a claim without a volume.
func pending(s *Snapshot) {
	s.Claims[0].Annotations, s.Claims[0].Spec.VolumeName, s.Claims[0].Status.Phase = nil, "", v1.ClaimPending
}

// unprovisioned is a claim without a volume and without a disk.
func unprovisioned(s *Snapshot) {
	pending(s)
	noVolume(s)
	noDisk(s)
}

func otherVolume(change ...func(*v1.PersistentVolume)) edit {
	return func(s *Snapshot) {
		other := volumeNamed("other", handle, "uid-2")
		for _, f := range change {
			f(other)
		}
		s.Volumes = append(s.Volumes, other)
	}
}

func otherClaim(change ...func(*v1.PersistentVolumeClaim)) edit {
	return func(s *Snapshot) {
		other := claimNamed("other", "uid-2", name)
		for _, f := range change {
			f(other)
		}
		s.Claims = append(s.Claims, other)
	}
}

func disk(handle, name string) edit {
	return func(s *Snapshot) { s.Disks = append(s.Disks, Disk{Handle: handle, Name: name}) }
}

func entry(change ...func(*journal.Entry)) edit {
	return func(s *Snapshot) {
		e := journal.Entry{UID: claimUID, Namespace: "ns", Name: "claim",
			Volume: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		for _, f := range change {
			f(&e)
		}
		s.Entries = append(s.Entries, e)
	}
}

func discarding(e *journal.Entry)    { e.State, e.Handle = journal.Discarding, handle }
func custodyBroken(e *journal.Entry) { e.CustodyBroken = true }
func unresolved(e *journal.Entry)    { e.Unresolved = &journal.Unresolved{Reason: "secret is gone"} }

func announced(e *journal.Entry) { e.Announced = true }

func calling(awaited bool) edit {
	return func(s *Snapshot) { s.Calls = []Call{{Kind: CreateVolume, Name: name, Awaited: awaited}} }
}

func kept(s *Snapshot)    { s.Kept = []string{handle} }
func givenUp(s *Snapshot) { s.GivenUp = []string{handle} }

func pod(node string) edit {
	return func(s *Snapshot) {
		s.Pods = append(s.Pods, &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"},
			Spec: v1.PodSpec{NodeName: node, Volumes: []v1.Volume{{VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
			}}}},
		})
	}
}

// rulesOf returns the sorted rules of the violations. Each one must say something.
func rulesOf(t *testing.T, found []Violation) []Rule {
	t.Helper()
	var broken []Rule
	for _, violation := range found {
		t.Log(violation)
		if violation.Object == "" || len(violation.Sentence) <= len(violation.Object) {
			t.Errorf("%+v does not say what happened to which object", violation)
		}
		broken = append(broken, violation.Rule)
	}
	slices.Sort(broken)
	return broken
}

func TestEveryRuleHasItsOwnName(t *testing.T) {
	enumtest.ExpectNames(t, DataLost, DiskMissing)
}

// A rule that no case breaks may never be able to fire.
func TestEveryRuleIsBrokenBySomeCase(t *testing.T) {
	seen := map[Rule]bool{}
	for _, cases := range []map[string]stepCase{callCases, forgottenCases, volumeCases, claimCases} {
		for _, tc := range cases {
			for _, rule := range tc.want {
				seen[rule] = true
			}
		}
	}
	for _, tc := range restCases {
		for _, rule := range tc.want {
			seen[rule] = true
		}
	}
	for rule := DataLost; rule <= DiskMissing; rule++ {
		if !seen[rule] {
			t.Errorf("no case breaks %v", rule)
		}
	}
}
