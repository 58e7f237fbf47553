package provisioning

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

var ourNames = Names{Driver: "ours", Migrated: []string{"kubernetes.io/ours"},
	PluginOf: func(volume *v1.PersistentVolume) string {
		if volume.Spec.HostPath != nil {
			return "kubernetes.io/ours"
		}
		return ""
	}}

func claimOf(annotation, value string, finalizers ...string) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "c", UID: "uid", ResourceVersion: "7", Finalizers: finalizers,
	}}
	if annotation != "" {
		claim.Annotations = map[string]string{annotation: value}
	}
	return claim
}

// cloneOf returns a claim for a clone.
func cloneOf(phase v1.PersistentVolumeClaimPhase) *v1.PersistentVolumeClaim {
	claim := claimOf(storage.AnnStorageProvisioner, "theirs")
	claim.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "source"}
	claim.Status.Phase = phase
	return claim
}

func TestClaimsOfOtherDriversAreNotCached(t *testing.T) {
	for name, tc := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		ours  bool
	}{
		"no provisioner annotation":     {claimOf("", ""), false},
		"other driver":                  {claimOf(storage.AnnStorageProvisioner, "theirs"), false},
		"other driver, beta annotation": {claimOf(storage.AnnBetaStorageProvisioner, "theirs"), false},
		"empty provisioner annotation":  {claimOf(storage.AnnStorageProvisioner, ""), false},
		"own driver":                    {claimOf(storage.AnnStorageProvisioner, "ours"), true},
		"own driver, beta annotation":   {claimOf(storage.AnnBetaStorageProvisioner, "ours"), true},
		"migrated plugin":               {claimOf(storage.AnnStorageProvisioner, "kubernetes.io/ours"), true},
		"migrated to own driver":        {claimOf(storage.AnnMigratedTo, "ours"), true},
		"source of a clone":             {claimOf("", "", "provisioner.storage.kubernetes.io/cloning-protection"), true},
		"pending clone of other driver": {cloneOf(v1.ClaimPending), true},
		"bound clone of other driver":   {cloneOf(v1.ClaimBound), false},
		"pod protection finalizer only": {claimOf("", "", "kubernetes.io/pvc-protection"), false},
		"other plugin":                  {claimOf(storage.AnnStorageProvisioner, "kubernetes.io/theirs"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ourNames.OwnsClaim(tc.claim); got != tc.ours {
				t.Errorf("cached: %v, want %v", got, tc.ours)
			}
		})
	}
}

func TestVolumesOfOtherDriversAreNotCached(t *testing.T) {
	const provisionedBy = storage.AnnDynamicallyProvisioned
	for name, tc := range map[string]struct {
		annotations map[string]string
		csi         string
		path        string // of the plugin that the driver replaces
		ours        bool
	}{
		"static volume of the migrated plugin":    {path: "disk", ours: true},
		"other in-tree volume":                    {ours: false},
		"static volume of own driver":             {csi: "ours", ours: true},
		"static volume of other driver":           {csi: "theirs", ours: false},
		"dynamic volume of own driver":            {annotations: map[string]string{provisionedBy: "ours"}, csi: "ours", ours: true},
		"dynamic volume of other driver":          {annotations: map[string]string{provisionedBy: "theirs"}, csi: "theirs", ours: false},
		"created by the migrated plugin":          {annotations: map[string]string{provisionedBy: "kubernetes.io/ours"}, ours: true},
		"created by other plugin":                 {annotations: map[string]string{provisionedBy: "kubernetes.io/theirs"}, ours: false},
		"migrated to own driver":                  {annotations: map[string]string{provisionedBy: "kubernetes.io/x", storage.AnnMigratedTo: "ours"}, ours: true},
		"migrated to other driver":                {annotations: map[string]string{provisionedBy: "kubernetes.io/x", storage.AnnMigratedTo: "theirs"}, ours: false},
		"created by other driver, own CSI source": {annotations: map[string]string{provisionedBy: "theirs"}, csi: "ours", ours: true},
		"created by own driver, other CSI source": {annotations: map[string]string{provisionedBy: "ours"}, csi: "theirs", ours: true},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
				Name: "v", UID: "uid", ResourceVersion: "7", Annotations: tc.annotations,
			}}
			if tc.csi != "" {
				volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: tc.csi, VolumeHandle: "h"}
			}
			if tc.path != "" {
				volume.Spec.HostPath = &v1.HostPathVolumeSource{Path: tc.path}
			}
			if got := ourNames.OwnsVolume(volume); got != tc.ours {
				t.Errorf("cached: %v, want %v", got, tc.ours)
			}
		})
	}
}

// A static volume names no provisioner and can have the directory of a provisioner's volume.
func TestStaticVolumesAreCachedForALibrary(t *testing.T) {
	for name, tc := range map[string]struct {
		provisioner string // "" for a static volume
		csi         string
		kept        bool
	}{
		"static":                          {"", "", true},
		"static, of a CSI driver":         {"", "theirs", false},
		"dynamic, of another provisioner": {"theirs", "", false},
		"dynamic":                         {"ours", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &v1.PersistentVolume{}
			if tc.provisioner != "" {
				volume.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: tc.provisioner}
			}
			if tc.csi != "" {
				volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: tc.csi}
			}
			if got := (Names{Driver: "ours", Static: true}).OwnsVolume(volume); got != tc.kept {
				t.Errorf("kept: %v, want %v", got, tc.kept)
			}
			if got := (Names{Driver: "ours"}).OwnsVolume(volume); got != (tc.provisioner == "ours") {
				t.Errorf("kept for a CSI driver: %v", got)
			}
		})
	}
}

func TestAttachmentIsTrimmedToVolumeAndNode(t *testing.T) {
	given := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid", ResourceVersion: "7",
			Annotations: map[string]string{"much": "more"}},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "theirs", NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v")},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
	want := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid", ResourceVersion: "7"},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "theirs", NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v")},
		},
	}
	for range 2 { // a transform can be called again with what it made
		kept, err := TrimAttachment(given)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Errorf("trimmed (-want +got):\n%s", diff)
		}
		given = kept.(*storagev1.VolumeAttachment)
	}
}
