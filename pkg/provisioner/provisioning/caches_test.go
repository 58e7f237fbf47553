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

var ourNames = Names{Driver: "ours", Migrated: []string{"kubernetes.io/ours"}, PluginOf: func(volume *v1.PersistentVolume) string {
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

// cloneOf is a claim for a clone.
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
		"nobody was asked yet":                           {claimOf("", ""), false},
		"another driver was asked":                       {claimOf(storage.AnnStorageProvisioner, "theirs"), false},
		"another driver was asked in the old way":        {claimOf(storage.AnnBetaStorageProvisioner, "theirs"), false},
		"nobody is named":                                {claimOf(storage.AnnStorageProvisioner, ""), false},
		"the driver was asked":                           {claimOf(storage.AnnStorageProvisioner, "ours"), true},
		"the driver was asked in the old way":            {claimOf(storage.AnnBetaStorageProvisioner, "ours"), true},
		"the plugin that it replaces was asked":          {claimOf(storage.AnnStorageProvisioner, "kubernetes.io/ours"), true},
		"the claim was migrated to the driver":           {claimOf(storage.AnnMigratedTo, "ours"), true},
		"a volume is made, nobody says by whom":          {claimOf("", "", "exeunt.io/provisioning"), true},
		"another driver was asked while we were at it":   {claimOf(storage.AnnBetaStorageProvisioner, "theirs", "exeunt.io/provisioning"), true},
		"it is cloned":                                   {claimOf("", "", "provisioner.storage.kubernetes.io/cloning-protection"), true},
		"it waits for a clone that another driver makes": {cloneOf(v1.ClaimPending), true},
		"it has a clone that another driver made":        {cloneOf(v1.ClaimBound), false},
		"a pod uses it, which is not our affair":         {claimOf("", "", "kubernetes.io/pvc-protection"), false},
		"another plugin than the replaced was asked":     {claimOf(storage.AnnStorageProvisioner, "kubernetes.io/theirs"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ourNames.ownsClaim(tc.claim); got != tc.ours {
				t.Errorf("kept: %v, want %v", got, tc.ours)
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
		"a static volume of the plugin that the driver replaces, of which nobody says so": {path: "disk", ours: true},
		"an in-tree volume":                              {ours: false},
		"a static volume of the driver":                  {csi: "ours", ours: true},
		"a static volume of another driver":              {csi: "theirs", ours: false},
		"a dynamic volume of the driver":                 {annotations: map[string]string{provisionedBy: "ours"}, csi: "ours", ours: true},
		"a dynamic volume of another driver":             {annotations: map[string]string{provisionedBy: "theirs"}, csi: "theirs", ours: false},
		"made by the plugin that the driver replaces":    {annotations: map[string]string{provisionedBy: "kubernetes.io/ours"}, ours: true},
		"made by another plugin":                         {annotations: map[string]string{provisionedBy: "kubernetes.io/theirs"}, ours: false},
		"migrated to the driver":                         {annotations: map[string]string{provisionedBy: "kubernetes.io/x", storage.AnnMigratedTo: "ours"}, ours: true},
		"migrated to another driver":                     {annotations: map[string]string{provisionedBy: "kubernetes.io/x", storage.AnnMigratedTo: "theirs"}, ours: false},
		"made by another driver, with a handle of ours":  {annotations: map[string]string{provisionedBy: "theirs"}, csi: "ours", ours: true},
		"made by the driver, with a handle of another's": {annotations: map[string]string{provisionedBy: "ours"}, csi: "theirs", ours: true},
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
			if got := ourNames.ownsVolume(volume); got != tc.ours {
				t.Errorf("kept: %v, want %v", got, tc.ours)
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
			if got := (Names{Driver: "ours", Static: true}).ownsVolume(volume); got != tc.kept {
				t.Errorf("kept: %v, want %v", got, tc.kept)
			}
			if got := (Names{Driver: "ours"}).ownsVolume(volume); got != (tc.provisioner == "ours") {
				t.Errorf("kept for a CSI driver: %v", got)
			}
		})
	}
}

func TestAttachmentIsTrimmedToVolumeAndNode(t *testing.T) {
	given := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid", ResourceVersion: "7", Annotations: map[string]string{"much": "more"}},
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
			t.Errorf("kept (-want +got):\n%s", diff)
		}
		given = kept.(*storagev1.VolumeAttachment)
	}
}
