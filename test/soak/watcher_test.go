package main

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// testVolume returns a volume for the claim with the UID.
func testVolume(policy v1.PersistentVolumeReclaimPolicy, claim types.UID) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "volume", ResourceVersion: "1"},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy,
			ClaimRef:                      &v1.ObjectReference{Namespace: "soak", Name: "claim", UID: claim},
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{VolumeHandle: "handle"}},
		},
	}
}

func TestWatcherJudgesDeleteVolume(t *testing.T) {
	const remove, retain = v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRetain
	call := csimock.Call{Method: "DeleteVolume", Volume: "handle", Seq: 3, Time: time.Now()}
	for name, tc := range map[string]struct {
		versions []*v1.PersistentVolume
		late     time.Duration
		want     string
		gap      bool
	}{
		"claim is gone":                  {[]*v1.PersistentVolume{testVolume(remove, "gone")}, 0, "", false},
		"claim exists":                   {[]*v1.PersistentVolume{testVolume(remove, "lives")}, 0, "although claim soak/claim exists", false},
		"policy was never Delete":        {[]*v1.PersistentVolume{testVolume(retain, "gone")}, 0, "although the policy of volume was not Delete", false},
		"policy was Delete just before":  {[]*v1.PersistentVolume{testVolume(remove, "gone"), testVolume(retain, "gone")}, time.Second, "", false},
		"policy was Delete long ago":     {[]*v1.PersistentVolume{testVolume(remove, "gone"), testVolume(retain, "gone")}, time.Hour, "was not Delete", false},
		"volume was never recorded":      {nil, 0, "", false},
		"claim may be gone by then":      {[]*v1.PersistentVolume{testVolume(remove, "lives")}, 0, "", true},
		"policy may be another by then":  {[]*v1.PersistentVolume{testVolume(retain, "gone")}, time.Second, "", true},
		"gap long before":                {[]*v1.PersistentVolume{testVolume(retain, "gone")}, time.Hour, "was not Delete", true},
		"policy is Delete again":         {[]*v1.PersistentVolume{testVolume(retain, "gone"), testVolume(remove, "gone")}, time.Hour, "", false},
		"policy Delete, long since read": {[]*v1.PersistentVolume{testVolume(remove, "gone")}, time.Hour, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newView(newRecorder(false, true))
			v.put("claim", &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "soak", Name: "claim",
				UID: "lives"}})
			for _, version := range tc.versions {
				v.put("pv", version)
			}
			if tc.gap {
				v.gapSince = call.Time.Add(-time.Second)
				v.endGap()
			}
			late := call
			late.Time = late.Time.Add(tc.late)
			got := newWatcher(nil, v).forbidden(late)
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLostDiskIsReportedOnceAndNotIfExcused(t *testing.T) {
	w := newWatcher(nil, newView(newRecorder(false, true)))
	w.excused["excused"] = true
	w.report("excused", "it is missing")
	w.report("one", "the first reason")
	w.report("one", "the second reason")
	if len(w.lost) != 1 || w.lost["one"] != "the first reason" {
		t.Errorf("lost are %v", w.lost)
	}
}

func TestClaimIsGoneOnceItsNameHasAnotherUID(t *testing.T) {
	v := newView(newRecorder(false, true))
	for _, uid := range []types.UID{"first", "second"} {
		v.put("claim", &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "soak", Name: "claim", UID: uid}})
	}
	if len(v.claimUIDs) != 1 || v.claimUIDs["second"] == "" {
		t.Errorf("the claims are %v", v.claimUIDs)
	}
}

func TestDiskIsLostOnceItWasMissingForLong(t *testing.T) {
	w := newWatcher(nil, newView(newRecorder(false, true)))
	bound, none := map[string]string{"handle": "soak/claim"}, map[string]string{}
	if got := w.missingFor(time.Hour, bound, none); len(got) > 0 {
		t.Errorf("missing since a moment: %v", got)
	}
	w.missing["handle"] = time.Now().Add(-2 * time.Hour)
	if got := w.missingFor(time.Hour, bound, map[string]string{"handle": "name"}); len(got) > 0 {
		t.Errorf("a disk that exists is missing: %v", got)
	}
	if got := w.missingFor(time.Hour, bound, none); len(got) > 0 {
		t.Errorf("missing again since a moment: %v", got)
	}
	w.missing["handle"] = time.Now().Add(-2 * time.Hour)
	if got := w.missingFor(time.Hour, bound, none); got["handle"] != "soak/claim" {
		t.Errorf("missing for two hours: %v", got)
	}
}

func TestHistoryIsSortedWithTheWorld(t *testing.T) {
	h, start := newHistory(), time.Now()
	h.append("pv a", start.Add(3*time.Second), "third")
	h.append("claim a", start, "first")
	h.append("world", start.Add(time.Second), "second")
	h.append("world", start.Add(-time.Hour), "long before")
	got := h.about("pv a", "claim a", "pv a")
	first, second, third := strings.Index(got, "claim a: first"), strings.Index(got, "-- second"),
		strings.Index(got, "pv a: third")
	if first < 0 || second < first || third < second || strings.Count(got, "third") != 1 ||
		strings.Contains(got, "long before") {
		t.Errorf("the history is\n%s", got)
	}
}

func TestActorsOfUsers(t *testing.T) {
	for user, want := range map[string]string{
		sandbox.PVControllerAccount.Name(): "pv-controller",
		sandbox.ProvisionerAccount.Name():  "provisioner",
		sandbox.UpstreamSidecarUser.Name(): "csi-provisioner",
		"system:kube-controller-manager":   "kube-controller-manager",
		"admin":                            "",
	} {
		if got := actorOf(user); string(got) != want {
			t.Errorf("%s is %q, want %q", user, got, want)
		}
	}
}
