package protection_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestIsUnneededCloneSourceOnEveryState(t *testing.T) {
	for bits := range 8 {
		s := protection.CloneSourceState{Deleting: bits&1 != 0, Protected: bits&2 != 0, Needed: bits&4 != 0}
		if got, want := protection.IsUnneededCloneSource(s), s.Deleting && s.Protected && !s.Needed; got != want {
			t.Errorf("IsUnneededCloneSource(%+v) = %v, want %v", s, got, want)
		}
	}
}

func TestDecideSnapshotOnEveryState(t *testing.T) {
	for bits := range 8 {
		s := protection.SnapshotState{Protected: bits&1 != 0, Needed: bits&2 != 0, Confirmed: bits&4 != 0}
		action := protection.DecideSnapshot(s)
		if action == protection.UnprotectSnapshot && (s.Needed || !s.Protected || !s.Confirmed) {
			t.Errorf("finalizer is removed too early: %+v", s)
		}
		if s.Protected && !s.Needed && action == protection.KeepSnapshot {
			t.Errorf("stuck: %+v", s)
		}
		if s.Confirmed && action == protection.ConfirmSnapshot {
			t.Errorf("confirmed twice: %+v", s)
		}
	}
}

func TestNeededSource(t *testing.T) {
	core, snapshots, foreign, other := "", "snapshot.storage.k8s.io", "populator.example.com", "other"
	claim := func(phase v1.PersistentVolumeClaimPhase, source *v1.TypedLocalObjectReference,
		ref *v1.TypedObjectReference) *v1.PersistentVolumeClaim {
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
		"pending clone": {claim(v1.ClaimPending, local(nil, "PersistentVolumeClaim"), nil),
			storage.DataSource{Kind: storage.SourceClaim, Namespace: "ns", Name: "from"}},
		"new clone": {claim("", local(&core, "PersistentVolumeClaim"), nil),
			storage.DataSource{Kind: storage.SourceClaim, Namespace: "ns", Name: "from"}},
		"bound clone": {claim(v1.ClaimBound, local(nil, "PersistentVolumeClaim"), nil), storage.DataSource{}},
		"lost clone":  {claim(v1.ClaimLost, local(nil, "PersistentVolumeClaim"), nil), storage.DataSource{}},
		"snapshot": {claim(v1.ClaimPending, local(&snapshots, "VolumeSnapshot"), nil),
			storage.DataSource{Kind: storage.SourceSnapshot, Namespace: "ns", Name: "from"}},
		"snapshot without group": {claim(v1.ClaimPending, local(nil, "VolumeSnapshot"), nil),
			storage.DataSource{Kind: storage.SourceSnapshot, Namespace: "ns", Name: "from"}},
		"snapshot of another group": {claim(v1.ClaimPending, local(&foreign, "VolumeSnapshot"), nil), storage.DataSource{}},
		"no data source":            {claim(v1.ClaimPending, nil, nil), storage.DataSource{}},
		"dataSourceRef without dataSource": {claim(v1.ClaimPending, nil,
			&v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "from"}),
			storage.DataSource{Kind: storage.SourceClaim, Namespace: "ns", Name: "from"}},
		"dataSourceRef to another namespace": {claim(v1.ClaimPending, nil,
			&v1.TypedObjectReference{APIGroup: &snapshots, Kind: "VolumeSnapshot", Name: "from", Namespace: &other}),
			storage.DataSource{Kind: storage.SourceSnapshot, Namespace: "other", Name: "from"}},
		"populator": {claim(v1.ClaimPending, nil,
			&v1.TypedObjectReference{APIGroup: &foreign, Kind: "Image", Name: "from"}), storage.DataSource{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := protection.NeededSource(tc.claim); got != tc.want {
				t.Errorf("NeededSource = %+v, want %+v", got, tc.want)
			}
		})
	}
}
