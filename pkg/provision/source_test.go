package provision_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// pair is a claim for a clone, its source claim and the source volume.
type pair struct {
	claim, source *v1.PersistentVolumeClaim
	volume        *v1.PersistentVolume
}

func newPair() *pair {
	claim := func(name string) *v1.PersistentVolumeClaim {
		return &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "uid"},
			Spec:       v1.PersistentVolumeClaimSpec{StorageClassName: pointer("fast"), Resources: requests("1Gi")},
		}
	}
	p := &pair{claim: claim("clone"), source: claim("origin")}
	p.source.Spec.VolumeName, p.source.Status.Phase = "v", v1.ClaimBound
	p.volume = &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound}}
	p.volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: "team", Name: "origin", UID: p.source.UID}
	p.volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: "h"}
	return p
}

var block, files = v1.PersistentVolumeBlock, v1.PersistentVolumeFilesystem

var fromClaimCases = map[string]struct {
	change func(*pair)
	names  string
}{
	"matching clone":                   {func(*pair) {}, ""},
	"larger clone":                     {func(p *pair) { p.claim.Spec.Resources = requests("2Gi") }, ""},
	"other class of the same driver":   {func(p *pair) { p.claim.Spec.StorageClassName = pointer("slow") }, ""},
	"both raw block":                   {func(p *pair) { p.claim.Spec.VolumeMode, p.volume.Spec.VolumeMode = &block, &block }, ""},
	"explicit and default file system": {func(p *pair) { p.claim.Spec.VolumeMode = &files }, ""},
	"missing source":                   {func(p *pair) { p.source = nil }, "does not exist"},
	"source being deleted":             {func(p *pair) { p.source.DeletionTimestamp = &metav1.Time{} }, "being deleted"},
	"protected source being deleted": {func(p *pair) {
		p.source.DeletionTimestamp, p.source.Finalizers = &metav1.Time{}, []string{string(finalizer.CloneSource)}
	}, ""},
	"deleted clone skips checks of the source": {func(p *pair) {
		p.claim.DeletionTimestamp, p.source.DeletionTimestamp = &metav1.Time{}, &metav1.Time{}
		p.source.Status.Phase, p.source.Spec.Resources, p.volume.Status.Phase = v1.ClaimLost, requests("2Gi"),
			v1.VolumeReleased
	}, ""},
	"deleted clone needs the source volume": {func(p *pair) { p.claim.DeletionTimestamp, p.volume = &metav1.Time{}, nil }, "does not exist"},
	"source pending":                        {func(p *pair) { p.source.Status.Phase = v1.ClaimPending }, "status of Bound"},
	"source lost":                           {func(p *pair) { p.source.Status.Phase = v1.ClaimLost }, "status of Bound"},
	"source without volume name":            {func(p *pair) { p.source.Spec.VolumeName = "" }, "status of Bound"},
	"source without a class":                {func(p *pair) { p.source.Spec.StorageClassName = nil }, "storageclass"},
	"clone without a class":                 {func(p *pair) { p.claim.Spec.StorageClassName = nil }, "storageclass"},
	"fraction of a byte, rounded up": {func(p *pair) {
		p.claim.Spec.Resources, p.source.Spec.Resources = requests("1000000000500m"), requests("1000000001")
	}, ""},
	"smaller, rounded up": {func(p *pair) {
		p.claim.Spec.Resources, p.source.Spec.Resources = requests("1000000000500m"), requests("1000000002")
	}, "1000000002"},
	"smaller clone":                      {func(p *pair) { p.claim.Spec.Resources = requests("1Mi") }, "1Mi"},
	"missing volume":                     {func(p *pair) { p.volume = nil }, "does not exist"},
	"volume without claimRef":            {func(p *pair) { p.volume.Spec.ClaimRef = nil }, "not bound to the claim"},
	"volume of an earlier claim":         {func(p *pair) { p.volume.Spec.ClaimRef.UID = "old" }, "not bound to the claim"},
	"volume of another namespace":        {func(p *pair) { p.volume.Spec.ClaimRef.Namespace = "other" }, "not bound to the claim"},
	"volume of another claim":            {func(p *pair) { p.volume.Spec.ClaimRef.Name = "other" }, "not bound to the claim"},
	"released volume":                    {func(p *pair) { p.volume.Status.Phase = v1.VolumeReleased }, "not bound to the claim"},
	"volume without CSI source":          {func(p *pair) { p.volume.Spec.CSI = nil }, "not of driver"},
	"volume of another driver":           {func(p *pair) { p.volume.Spec.CSI.Driver = "other" }, "not of driver"},
	"file system source for block clone": {func(p *pair) { p.claim.Spec.VolumeMode = &block }, "Filesystem"},
	"block source for file system clone": {func(p *pair) { p.volume.Spec.VolumeMode = &block }, "Block"},
}

func TestFromClaim(t *testing.T) {
	for name, tc := range fromClaimCases {
		t.Run(name, func(t *testing.T) {
			p := newPair()
			tc.change(p)
			got, err := provision.FromClaim(p.claim, p.source, p.volume, "driver")
			if tc.names == "" {
				if err != nil || got.GetVolume().GetVolumeId() != "h" {
					t.Errorf("FromClaim = %v, %v", got, err)
				}
				return
			}
			expectNotYet(t, name, err)
			if err != nil && !strings.Contains(err.Error(), tc.names) {
				t.Errorf("FromClaim = %v, want it to name %q", err, tc.names)
			}
		})
	}
}

func newSnapshot() *provision.SnapshotState {
	return &provision.SnapshotState{
		Name: "s", Ready: true, RestoreSize: pointer(resource.MustParse("1Gi")),
		Content: &provision.SnapshotContent{Name: "content", Driver: "driver", Mutual: true, Handle: "h",
			Mode: pointer(v1.PersistentVolumeBlock)},
	}
}

var fromSnapshotCases = map[string]struct {
	change func(*provision.SnapshotState)
	mode   *v1.PersistentVolumeMode
	size   string
	lax    bool
	ends   bool // the claim is being deleted
	names  string
}{
	"matching volume": {mode: &block},
	"larger volume":   {mode: &block, size: "2Gi"},
	"fraction of a byte, rounded up": {mode: &block, size: "1000000000500m",
		change: func(s *provision.SnapshotState) { s.RestoreSize = pointer(resource.MustParse("1000000001")) }},
	"unknown restore size":             {mode: &block, size: "1", change: func(s *provision.SnapshotState) { s.RestoreSize = nil }},
	"claim without a mode":             {},
	"unknown source mode":              {mode: &files, change: func(s *provision.SnapshotState) { s.Content.Mode = nil }},
	"other mode without the check":     {mode: &files, lax: true},
	"other mode, allowed":              {mode: &files, change: func(s *provision.SnapshotState) { s.Content.AllowModeChange = "true" }},
	"protected snapshot being deleted": {mode: &block, change: func(s *provision.SnapshotState) { s.Deleting, s.Protected = true, true }},
	"other mode":                       {mode: &files, names: provision.AllowModeChange},
	"other mode, forbidden": {mode: &files, names: provision.AllowModeChange,
		change: func(s *provision.SnapshotState) { s.Content.AllowModeChange = "false" }},
	"other mode, invalid permission": {mode: &files, names: provision.AllowModeChange,
		change: func(s *provision.SnapshotState) { s.Content.AllowModeChange = "yes!" }},
	"deleted claim skips checks of the snapshot": {mode: &files, ends: true, size: "1Mi",
		change: func(s *provision.SnapshotState) { s.Deleting, s.Ready = true, false }},
	"deleted claim needs the snapshot handle": {ends: true, names: "not available", change: func(s *provision.SnapshotState) { s.Content.Handle = "" }},
	"snapshot being deleted":                  {names: "being deleted", change: func(s *provision.SnapshotState) { s.Deleting = true }},
	"snapshot without content":                {names: "not bound", change: func(s *provision.SnapshotState) { s.Content = nil }},
	"content of another snapshot":             {names: "different snapshot", change: func(s *provision.SnapshotState) { s.Content.Mutual = false }},
	"content of another driver":               {names: "other", change: func(s *provision.SnapshotState) { s.Content.Driver = "other" }},
	"snapshot not ready":                      {names: "not Ready", change: func(s *provision.SnapshotState) { s.Ready = false }},
	"snapshot without handle":                 {names: "not available", change: func(s *provision.SnapshotState) { s.Content.Handle = "" }},
	"smaller volume":                          {size: "1Mi", names: "1Gi"},
	"smaller volume of protected snapshot":    {size: "1Mi", names: "1Gi", change: func(s *provision.SnapshotState) { s.Deleting, s.Protected = true, true }},
}

func TestFromSnapshot(t *testing.T) {
	for name, tc := range fromSnapshotCases {
		t.Run(name, func(t *testing.T) {
			claim := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{VolumeMode: tc.mode,
				Resources: requests("1Gi")}}
			if tc.ends {
				claim.DeletionTimestamp = &metav1.Time{}
			}
			if tc.size != "" {
				claim.Spec.Resources = requests(tc.size)
			}
			snapshot := newSnapshot()
			if tc.change != nil {
				tc.change(snapshot)
			}
			got, err := provision.FromSnapshot(claim, snapshot, "driver", !tc.lax)
			if tc.names == "" {
				if err != nil || got.GetSnapshot().GetSnapshotId() != "h" {
					t.Errorf("FromSnapshot = %v, %v", got, err)
				}
				return
			}
			expectNotYet(t, name, err)
			if err != nil && !strings.Contains(err.Error(), tc.names) {
				t.Errorf("FromSnapshot = %v, want it to name %q", err, tc.names)
			}
		})
	}
	_, err := provision.FromSnapshot(&v1.PersistentVolumeClaim{}, nil, "driver", true)
	expectNotYet(t, "no snapshot", err)
}
