package provisioning

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// changeLive changes the claim in the API only; nil deletes it.
func (f *flow) changeLive(change func(*v1.PersistentVolumeClaim)) {
	f.Helper()
	claims := v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	claim, err := f.client.CoreV1().PersistentVolumeClaims("ns").Get(f.Context(), "claim", metav1.GetOptions{})
	f.must(err)
	if change == nil {
		f.must(f.client.Tracker().Delete(claims, "ns", "claim"))
		return
	}
	claim = claim.DeepCopy()
	change(claim)
	f.must(f.client.Tracker().Update(claims, claim, "ns"))
}

func setUID(claim *v1.PersistentVolumeClaim) { claim.UID = "another" }

func TestClaimIsReadLive(t *testing.T) {
	for name, tc := range map[string]struct {
		live func(f *flow)
		gone bool
		uid  types.UID
		read provision.Read
		fail bool
	}{
		"unchanged":         {func(*flow) {}, false, "uid", provision.ClaimRead, false},
		"gone":              {func(f *flow) { f.changeLive(nil) }, true, "uid", provision.ClaimRead, false},
		"created again":     {func(f *flow) { f.changeLive(setUID) }, true, "uid", provision.ClaimRead, false},
		"cannot be read":    {func(f *flow) { f.failNext("get", "persistentvolumeclaims", false) }, false, "", 0, true},
		"being deleted now": {func(f *flow) { f.changeLive(setDeletionTimestamp) }, false, "uid", provision.ClaimRead, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			o := &observation{claim: f.syncClaim(), name: "pvc-uid"}
			tc.live(f)
			after, err := f.readClaim(t.Context(), o)
			if tc.fail {
				if err == nil {
					t.Errorf("%+v, want an error", after)
				}
				return
			}
			f.must(err)
			if after.gone != tc.gone || after.claim.UID != tc.uid || after.read != tc.read {
				t.Errorf("gone %v, UID %s, read %v; want %v, %s, %v", after.gone, after.claim.UID, after.read, tc.gone, tc.uid,
					tc.read)
			}
		})
	}
}

func setDeletionTimestamp(claim *v1.PersistentVolumeClaim) {
	claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

func TestRescheduleRemovesOnlyTheUnfitNode(t *testing.T) {
	for name, live := range map[string]func(*v1.PersistentVolumeClaim){
		"another node selected": func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "fit" },
		"claim created again":   setUID,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "unfit" })
			o := &observation{claim: f.syncClaim(), name: "pvc-uid"}
			f.changeLive(live)
			if _, err := f.reschedule(t.Context(), o); err == nil {
				t.Error("want an error")
			}
			if f.syncClaim().Annotations[storage.AnnSelectedNode] == "" {
				t.Error("the selected node is removed")
			}
		})
	}
}
