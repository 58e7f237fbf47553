package provision_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// cloneSentences are what the events of clones say, by the cases of TestFromClaim, to be read.
var cloneSentences = map[string]string{
	"block source for file system clone":    "source PVC and clone must have the same volume mode for cloning: volume v has the mode Block, and the claim requests Filesystem",
	"clone without a class":                 "source PVC (origin) and its clone must name a storage class, their storageclass cannot be empty",
	"deleted clone needs the source volume": "claim in dataSource not bound or invalid: its volume v does not exist",
	"file system source for block clone":    "source PVC and clone must have the same volume mode for cloning: volume v has the mode Filesystem, and the claim requests Block",
	"missing source":                        "error getting PVC: the claim that is the data source does not exist",
	"missing volume":                        "claim in dataSource not bound or invalid: its volume v does not exist",
	"released volume":                       "claim in dataSource not bound or invalid: its volume v is not bound to the claim origin",
	"smaller clone":                         "new PVC request must be greater than or equal in size to the specified PVC data source: 1Mi is less than the 1Gi of claim origin",
	"smaller, rounded up":                   "new PVC request must be greater than or equal in size to the specified PVC data source: 1000000000500m is less than the 1000000002 of claim origin",
	"source being deleted":                  "PVC DataSource origin is currently being deleted, and can no longer be cloned",
	"source lost":                           "PVC DataSource origin must have a status of Bound",
	"source pending":                        "PVC DataSource origin must have a status of Bound",
	"source without a class":                "source PVC (origin) and its clone must name a storage class, their storageclass cannot be empty",
	"source without volume name":            "PVC DataSource origin must have a status of Bound",
	"volume of an earlier claim":            "claim in dataSource not bound or invalid: its volume v is not bound to the claim origin",
	"volume of another claim":               "claim in dataSource not bound or invalid: its volume v is not bound to the claim origin",
	"volume of another driver":              "claim in dataSource not bound or invalid: its volume v is not of driver driver",
	"volume of another namespace":           "claim in dataSource not bound or invalid: its volume v is not bound to the claim origin",
	"volume without CSI source":             "claim in dataSource not bound or invalid: its volume v is not of driver driver",
	"volume without claimRef":               "claim in dataSource not bound or invalid: its volume v is not bound to the claim origin",
}

func TestEventsOfClonesAreSentences(t *testing.T) {
	for name, tc := range fromClaimCases {
		p := newPair()
		tc.change(p)
		_, err := provision.FromClaim(p.claim, p.source, p.volume, "driver")
		expectSentence(t, name, err, cloneSentences[name])
	}
}

// snapshotSentences are what the events of restores say, by the cases of TestFromSnapshot.
var snapshotSentences = map[string]string{
	"content of another driver":               "snapshotcontent content for snapshot s is not handled by CSI driver driver of the storage class, but by other",
	"content of another snapshot":             "snapshotcontent content for snapshot s is bound to a different snapshot",
	"deleted claim needs the snapshot handle": "snapshot handle s is not available: the VolumeSnapshotContent content of the snapshot has none yet",
	"other mode":                           `requested volume mode Filesystem modifies the mode of the source volume but does not have permission to do so: the snapshot was taken of a volume with the mode Block; an administrator can allow it with the annotation snapshot.storage.kubernetes.io/allow-volume-mode-change=true on the VolumeSnapshotContent "content"`,
	"other mode, forbidden":                `requested volume mode Filesystem modifies the mode of the source volume but does not have permission to do so: the snapshot was taken of a volume with the mode Block; an administrator can allow it with the annotation snapshot.storage.kubernetes.io/allow-volume-mode-change=true on the VolumeSnapshotContent "content"`,
	"other mode, invalid permission":       `requested volume mode Filesystem modifies the mode of the source volume but does not have permission to do so: the snapshot was taken of a volume with the mode Block; an administrator can allow it with the annotation snapshot.storage.kubernetes.io/allow-volume-mode-change=true on the VolumeSnapshotContent "content"`,
	"smaller volume of protected snapshot": "requested volume size 1Mi is less than the size 1Gi for the source snapshot s",
	"smaller volume":                       "requested volume size 1Mi is less than the size 1Gi for the source snapshot s",
	"snapshot being deleted":               "snapshot s is being deleted, and can no longer be restored",
	"snapshot not ready":                   "snapshot s is not Ready",
	"snapshot without content":             "snapshot s not bound to a VolumeSnapshotContent",
	"snapshot without handle":              "snapshot handle s is not available: the VolumeSnapshotContent content of the snapshot has none yet",
}

func TestEventsOfRestoresAreSentences(t *testing.T) {
	for name, tc := range fromSnapshotCases {
		if tc.names == "" {
			continue
		}
		claim, snapshot := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{VolumeMode: tc.mode,
			Resources: requests("1Gi")}}, newSnapshot()
		if tc.size != "" {
			claim.Spec.Resources = requests(tc.size)
		}
		if tc.ends {
			claim.DeletionTimestamp = &metav1.Time{}
		}
		if tc.change != nil {
			tc.change(snapshot)
		}
		_, err := provision.FromSnapshot(claim, snapshot, "driver", !tc.lax)
		expectSentence(t, name, err, snapshotSentences[name])
	}
	_, err := provision.FromSnapshot(&v1.PersistentVolumeClaim{}, nil, "driver", true)
	expectSentence(t, "no snapshot", err,
		"error getting snapshot: the VolumeSnapshot that is the data source does not exist")
}

// The source is in the namespace of the claim, or in another one.
func TestEventsOfSourcesAreSentences(t *testing.T) {
	for name, tc := range map[string]struct {
		source v1.TypedObjectReference
		want   string
	}{
		"claim, same namespace": {v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "origin", Namespace: pointer("shop")}, ""},
		"claim, another namespace": {v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "origin",
			Namespace: pointer("other")},
			"dataSourceRef namespace specified: the data source is in namespace other, and this provisioner supports only sources in the namespace of the claim"},
		"snapshot, another namespace": {v1.TypedObjectReference{APIGroup: pointer("snapshot.storage.k8s.io"),
			Kind: "VolumeSnapshot", Name: "s", Namespace: pointer("other")},
			"dataSourceRef namespace specified: the data source is in namespace other, and this provisioner supports only sources in the namespace of the claim"},
		"snapshot of another group": {v1.TypedObjectReference{APIGroup: pointer("example.com"), Kind: "VolumeSnapshot",
			Name: "s"}, `PVC source does not belong to the right APIGroup: it is a VolumeSnapshot of the group "example.com", and only those of snapshot.storage.k8s.io can be restored`},
		"populator, same namespace": {v1.TypedObjectReference{APIGroup: pointer("example.com"), Kind: "Hello", Name: "h"},
			`Assuming an external populator will provision the volume: the data source is a Hello of the group "example.com"`},
		"populator, another namespace": {v1.TypedObjectReference{APIGroup: pointer("example.com"), Kind: "Hello", Name: "h",
			Namespace: pointer("other")},
			"dataSourceRef namespace specified: the data source is in namespace other, and this provisioner supports only sources in the namespace of the claim"},
		"source without a name": {v1.TypedObjectReference{Kind: "PersistentVolumeClaim"}, "PVC source not found: the claim has a data source without a name"},
	} {
		claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"},
			Spec: v1.PersistentVolumeClaimSpec{DataSourceRef: &tc.source}}
		_, err := provision.NeedsOf(claim, &storagev1.StorageClass{},
			provision.Driver{Name: "driver", Clones: true, Snapshots: true}, "v")
		expectSentence(t, name, err, tc.want)
	}
}

// expectSentence compares the text of an error, "" for no error.
func expectSentence(t *testing.T, name string, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%q: %q, want %q", name, got, want)
	}
}
