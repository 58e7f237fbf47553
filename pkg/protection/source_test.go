package protection_test

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/storage"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/protection"
)

func TestASourceIsLetGoInNoStateInWhichItMayStillBeRead(t *testing.T) {
	for bits := range 16 {
		s := protection.SourceState{Deleting: bits&1 != 0, Protected: bits&2 != 0, Needed: bits&4 != 0, Confirmed: bits&8 != 0}
		clone, snapshot := protection.DecideCloneSource(s), protection.DecideSnapshotSource(s)
		if (clone == protection.Unprotect || snapshot == protection.Unprotect) && (s.Needed || !s.Protected) {
			t.Errorf("let go too early, or without effect: %+v: %v, %v", s, clone, snapshot)
		}
		if snapshot == protection.Unprotect && !s.Confirmed {
			t.Errorf("a cache alone lets a snapshot go: %+v", s)
		}
		if s.Deleting && s.Protected && !s.Needed && (clone == protection.Wait || snapshot == protection.Wait) {
			t.Errorf("stuck: %+v: %v, %v", s, clone, snapshot)
		}
		if !s.Deleting && clone != protection.Wait {
			t.Errorf("a claim that stays is written to for nothing: %+v", s)
		}
		if s.Confirmed && snapshot == protection.Confirm {
			t.Errorf("confirms for ever: %+v", s)
		}
	}
}

func TestNeededSource(t *testing.T) {
	core, snapshots, foreign, other := "", "snapshot.storage.k8s.io", "populator.example.com", "other"
	claim := func(phase v1.PersistentVolumeClaimPhase, source *v1.TypedLocalObjectReference, ref *v1.TypedObjectReference) *v1.PersistentVolumeClaim {
		return &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"},
			Spec:       v1.PersistentVolumeClaimSpec{DataSource: source, DataSourceRef: ref},
			Status:     v1.PersistentVolumeClaimStatus{Phase: phase},
		}
	}
	local := func(group *string, kind string) *v1.TypedLocalObjectReference {
		return &v1.TypedLocalObjectReference{APIGroup: group, Kind: kind, Name: "from"}
	}
	for name, tc := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		want  storage.DataSource
	}{
		"a clone that waits":              {claim(v1.ClaimPending, local(nil, "PersistentVolumeClaim"), nil), storage.DataSource{Kind: storage.SourceClaim, Namespace: "ns", Name: "from"}},
		"a clone just created":            {claim("", local(&core, "PersistentVolumeClaim"), nil), storage.DataSource{Kind: storage.SourceClaim, Namespace: "ns", Name: "from"}},
		"a clone that has its volume":     {claim(v1.ClaimBound, local(nil, "PersistentVolumeClaim"), nil), storage.DataSource{}},
		"a clone that lost its volume":    {claim(v1.ClaimLost, local(nil, "PersistentVolumeClaim"), nil), storage.DataSource{}},
		"from a snapshot":                 {claim(v1.ClaimPending, local(&snapshots, "VolumeSnapshot"), nil), storage.DataSource{Kind: storage.SourceSnapshot, Namespace: "ns", Name: "from"}},
		"from a snapshot, without group":  {claim(v1.ClaimPending, local(nil, "VolumeSnapshot"), nil), storage.DataSource{Kind: storage.SourceSnapshot, Namespace: "ns", Name: "from"}},
		"a kind of a foreign group":       {claim(v1.ClaimPending, local(&foreign, "VolumeSnapshot"), nil), storage.DataSource{}},
		"from nothing":                    {claim(v1.ClaimPending, nil, nil), storage.DataSource{}},
		"named by dataSourceRef alone":    {claim(v1.ClaimPending, nil, &v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "from"}), storage.DataSource{Kind: storage.SourceClaim, Namespace: "ns", Name: "from"}},
		"from another namespace":          {claim(v1.ClaimPending, nil, &v1.TypedObjectReference{APIGroup: &snapshots, Kind: "VolumeSnapshot", Name: "from", Namespace: &other}), storage.DataSource{Kind: storage.SourceSnapshot, Namespace: "other", Name: "from"}},
		"by a populator of another group": {claim(v1.ClaimPending, nil, &v1.TypedObjectReference{APIGroup: &foreign, Kind: "Image", Name: "from"}), storage.DataSource{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := protection.NeededSource(tc.claim); got != tc.want {
				t.Errorf("NeededSource = %+v, want %+v", got, tc.want)
			}
		})
	}
}
