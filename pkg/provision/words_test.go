package provision_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// needs returns why the claim can have no volume.
func needs(spec v1.PersistentVolumeClaimSpec, driver provision.Driver, parameters ...string) error {
	_, err := provision.NeedsOf(&v1.PersistentVolumeClaim{Spec: spec}, classOf(parameters...), driver, "pvc-1")
	return err
}

func cloning(change func(*pair)) error {
	p := newPair()
	change(p)
	_, err := provision.FromClaim(p.claim, p.source, p.volume, "driver")
	return err
}

func restoring(size string, change func(*provision.SnapshotState)) error {
	snapshot := newSnapshot()
	snapshot.Content.Mode = &files
	change(snapshot)
	claim := &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{VolumeMode: &files, Resources: requests(size)}}
	_, err := provision.FromSnapshot(claim, snapshot, "driver", true)
	return err
}

func restoringMissing() error {
	_, err := provision.FromSnapshot(&v1.PersistentVolumeClaim{}, nil, "driver", true)
	return err
}

// modifying returns why the class of attributes, nil for a missing class, cannot be used.
func modifying(class *storagev1.VolumeAttributesClass) error {
	_, err := provision.Attributes("gold", class, "driver")
	return err
}

// withSecrets returns why the secrets of a class cannot be used.
func withSecrets(parameters ...string) error {
	_, err := provision.SecretsOf(classOf(parameters...), claimOf(), "pvc-1")
	return err
}

const (
	snapshotGroup        = "snapshot.storage.k8s.io"
	stageSecretName      = prefix + "node-stage-secret-name"
	stageSecretNamespace = prefix + "node-stage-secret-namespace"
)

var elsewhere = &v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "c", Namespace: pointer("other")}

var refusalCases = map[string]struct {
	err   error
	words []string
}{
	"selector": {needs(v1.PersistentVolumeClaimSpec{Selector: &metav1.LabelSelector{}}, able), []string{"claim Selector is not supported"}},
	"no snapshots": {needs(v1.PersistentVolumeClaimSpec{DataSource: source(snapshotGroup, "VolumeSnapshot",
		"s")}, provision.Driver{}), []string{"does not support snapshot restore", "CREATE_DELETE_SNAPSHOT"}},
	"no clones": {needs(v1.PersistentVolumeClaimSpec{DataSource: source("", "PersistentVolumeClaim", "c")},
		provision.Driver{}), []string{"does not support clone operations", "CLONE_VOLUME"}},
	"no attributes": {needs(v1.PersistentVolumeClaimSpec{VolumeAttributesClassName: pointer("gold")},
		provision.Driver{}), []string{"does not support VolumeAttributesClass", "MODIFY_VOLUME"}},
	"source without name": {needs(v1.PersistentVolumeClaimSpec{DataSource: &v1.TypedLocalObjectReference{}}, able), []string{"PVC source not found"}},
	"snapshot of another API": {needs(v1.PersistentVolumeClaimSpec{DataSource: source("example.com", "VolumeSnapshot",
		"s")}, able), []string{"PVC source does not belong to the right APIGroup", snapshotGroup}},
	"another namespace": {needs(v1.PersistentVolumeClaimSpec{DataSourceRef: elsewhere}, able), []string{"dataSourceRef namespace specified"}},
	"populator": {needs(v1.PersistentVolumeClaimSpec{DataSource: source("example.com", "Hello", "h")}, able),
		[]string{"Assuming an external populator will provision the volume"}},
	"unknown parameter": {needs(v1.PersistentVolumeClaimSpec{}, able, prefix+"new", "x"),
		[]string{"unknown parameter key", "reserved namespace csi.storage.k8s.io/"}},
	"file system twice": {needs(v1.PersistentVolumeClaimSpec{}, able, "fstype", "a", prefix+"fstype", "b"),
		[]string{"fstype specified in parameters with both"}},
	"secret twice": {withSecrets(stageSecretName, "s", stageSecretNamespace, "ns", "csiNodeStageSecretName",
		"s"), []string{"secrets specified in parameters with both"}},
	"secret without name": {withSecrets(stageSecretNamespace, "s"), []string{"Both must be specified"}},
	"unknown token": {withSecrets(stageSecretName, "${pvc.uid}", stageSecretNamespace, "ns"),
		[]string{"error resolving value", "invalid token", "pvc.uid"}},
	"no name of a secret":    {withSecrets(stageSecretName, "A_B", stageSecretNamespace, "ns"), []string{"is not a valid secret name"}},
	"no name of a namespace": {withSecrets(stageSecretName, "s", stageSecretNamespace, "a.b"), []string{"is not a valid namespace name"}},
	"attributes of another": {modifying(&storagev1.VolumeAttributesClass{DriverName: "other"}),
		[]string{"VAC gold referenced in PVC is for driver other", "does not match driver name driver"}},
	"attributes are missing": {modifying(nil), []string{`volumeattributesclasses.storage.k8s.io "gold" not found`}},
	"snapshot is missing":    {restoringMissing(), []string{"error getting snapshot"}},
	"snapshot is not bound":  {restoring("1Gi", func(s *provision.SnapshotState) { s.Content = nil }), []string{"snapshot s not bound"}},
	"content of another": {restoring("1Gi", func(s *provision.SnapshotState) { s.Content.Mutual = false }),
		[]string{"snapshotcontent content for snapshot s is bound to a different snapshot"}},
	"another driver": {restoring("1Gi", func(s *provision.SnapshotState) { s.Content.Driver = "other" }),
		[]string{"snapshotcontent content for snapshot s is not handled by CSI driver"}},
	"no handle":             {restoring("1Gi", func(s *provision.SnapshotState) { s.Content.Handle = "" }), []string{"snapshot handle s is not available"}},
	"snapshot is deleted":   {restoring("1Gi", func(s *provision.SnapshotState) { s.Deleting = true }), []string{"snapshot s is being deleted"}},
	"snapshot is not ready": {restoring("1Gi", func(s *provision.SnapshotState) { s.Ready = false }), []string{"snapshot s is not Ready"}},
	"smaller than snapshot": {restoring("1Mi", func(*provision.SnapshotState) {}),
		[]string{"requested volume size 1Mi is less than the size 1Gi for the source snapshot s"}},
	"another mode": {restoring("1Gi", func(s *provision.SnapshotState) { s.Content.Mode = &block }),
		[]string{"modifies the mode of the source volume but does not have permission to do so", provision.AllowModeChange}},
	"source is missing": {cloning(func(p *pair) { p.source = nil }), []string{"error getting PVC"}},
	"source is deleted": {cloning(func(p *pair) { p.source.DeletionTimestamp = &metav1.Time{} }),
		[]string{"PVC DataSource origin is currently being deleted"}},
	"source is not bound": {cloning(func(p *pair) { p.source.Status.Phase = v1.ClaimPending }), []string{"PVC DataSource origin must have a status of Bound"}},
	"source has no class": {cloning(func(p *pair) { p.source.Spec.StorageClassName = nil }), []string{"source PVC (origin)", "storageclass cannot be empty"}},
	"smaller than source": {cloning(func(p *pair) { p.claim.Spec.Resources = requests("1Mi") }),
		[]string{"new PVC request must be greater than or equal in size to the specified PVC data source"}},
	"source has no volume":   {cloning(func(p *pair) { p.volume = nil }), []string{"claim in dataSource not bound or invalid"}},
	"volume of another":      {cloning(func(p *pair) { p.volume.Spec.ClaimRef = nil }), []string{"claim in dataSource not bound or invalid"}},
	"volume of other driver": {cloning(func(p *pair) { p.volume.Spec.CSI = nil }), []string{"claim in dataSource not bound or invalid"}},
	"clone of another mode": {cloning(func(p *pair) { p.claim.Spec.VolumeMode = &block }),
		[]string{"must have the same volume mode for cloning", "Filesystem", "Block"}},
}

// The words are those of external-provisioner 6.4 for the same flaw.
func TestRefusalsHaveUpstreamKeyWords(t *testing.T) {
	for what, tc := range refusalCases {
		for _, words := range tc.words {
			if tc.err == nil || !strings.Contains(tc.err.Error(), words) {
				t.Errorf("%s: %v lacks %q", what, tc.err, words)
			}
		}
	}
}

func TestUnusableHasUpstreamKeyWords(t *testing.T) {
	small := &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 10}}
	empty := &csi.CreateVolumeRequest{VolumeContentSource: fromSnapshot("s")}
	for words, got := range map[string]string{
		"created volume capacity 9 less than requested capacity 10": provision.Unusable(small,
			&csi.Volume{VolumeId: "h", CapacityBytes: 9}, false),
		"volume content source missing": provision.Unusable(empty, &csi.Volume{VolumeId: "h"},
			false),
	} {
		if !strings.Contains(got, words) {
			t.Errorf("%q lacks %q", got, words)
		}
	}
}
