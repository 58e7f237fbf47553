package provision_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

func input(change ...func(*provision.Input)) provision.Input {
	policy := v1.PersistentVolumeReclaimDelete
	w := provision.Input{
		Name: "pvc-1",
		Claim: &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
		Class: &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "driver",
			ReclaimPolicy: &policy, Parameters: map[string]string{"tier": "gold"}},
		Driver:      provision.Driver{Name: "driver"},
		AccessModes: []csi.VolumeCapability_AccessMode_Mode{csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	for _, f := range change {
		f(&w)
	}
	return w
}

func TestRequestHasSizeModeAndDriverParameters(t *testing.T) {
	request, err := provision.Request(input(func(w *provision.Input) {
		w.Class.Parameters["csi.storage.k8s.io/fstype"] = "xfs"
		w.Class.MountOptions = []string{"noatime"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	mount := request.VolumeCapabilities[0].GetMount()
	if request.CapacityRange.RequiredBytes != 1<<30 || mount.FsType != "xfs" || mount.MountFlags[0] != "noatime" {
		t.Errorf("request: %v", request)
	}
	if len(request.Parameters) != 1 || request.Parameters["tier"] != "gold" {
		t.Errorf("parameters: %v, want only the driver's", request.Parameters)
	}
}

func TestBlockClaimRequestsBlockVolume(t *testing.T) {
	block := v1.PersistentVolumeBlock
	request, err := provision.Request(input(func(w *provision.Input) { w.Claim.Spec.VolumeMode = &block; w.Settings.DefaultFSType = "ext4" }))
	if err != nil || request.VolumeCapabilities[0].GetBlock() == nil {
		t.Errorf("request: %v, %v", request, err)
	}
}

func TestOldFileSystemParameterIsSentToDriver(t *testing.T) {
	request, err := provision.Request(input(func(w *provision.Input) { w.Class.Parameters["fsType"] = "xfs" }))
	if err != nil {
		t.Fatal(err)
	}
	if request.VolumeCapabilities[0].GetMount().FsType != "xfs" || request.Parameters["fsType"] != "xfs" {
		t.Errorf("request: %v", request)
	}
}

func TestEachAccessModeIsOneCapability(t *testing.T) {
	modes := []csi.VolumeCapability_AccessMode_Mode{csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY}
	request, err := provision.Request(input(func(w *provision.Input) { w.AccessModes = modes }))
	if err != nil || len(request.VolumeCapabilities) != 2 || request.VolumeCapabilities[1].AccessMode.Mode != modes[1] {
		t.Errorf("request: %v, %v", request, err)
	}
}

func TestExtraMetadataNamesClaimAndVolume(t *testing.T) {
	request, err := provision.Request(input(func(w *provision.Input) {
		w.Settings.ExtraMetadata = true
		w.Claim.Name, w.Claim.Namespace = "data", "team"
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"tier": "gold", "csi.storage.k8s.io/pvc/name": "data",
		"csi.storage.k8s.io/pvc/namespace": "team", "csi.storage.k8s.io/pv/name": "pvc-1"}
	if !maps.Equal(request.Parameters, want) {
		t.Errorf("parameters: %v, want %v", request.Parameters, want)
	}
}

func TestVolumeName(t *testing.T) {
	const uid = "01234567-89ab-cdef-0123-456789abcdef"
	for name, tc := range map[string]struct {
		settings provision.Settings
		want     string
	}{
		"whole UID":                    {provision.Settings{NamePrefix: "pvc", NameLength: -1}, "pvc-" + uid},
		"shortened UID without dashes": {provision.Settings{NamePrefix: "x", NameLength: 10}, "x-0123456789"},
		"no part of the UID":           {provision.Settings{NamePrefix: "x", NameLength: 0}, "x-"},
		"length above the UID's":       {provision.Settings{NamePrefix: "x", NameLength: 99}, "x-0123456789abcdef0123456789abcdef"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := provision.VolumeName(tc.settings, uid); got != tc.want {
				t.Errorf("VolumeName = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestReaderOnlyVolumeIsPublishedReadOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		flag  bool
		modes []csi.VolumeCapability_AccessMode_Mode
		want  bool
	}{
		"read-only with flag":    {true, []csi.VolumeCapability_AccessMode_Mode{csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY}, true},
		"read-only without flag": {false, []csi.VolumeCapability_AccessMode_Mode{csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY}, false},
		"reader and writer modes": {true,
			[]csi.VolumeCapability_AccessMode_Mode{csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
				csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}, false},
		"writer mode": {true, []csi.VolumeCapability_AccessMode_Mode{csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}, false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := newVolume(t, input(func(w *provision.Input) { w.Settings.PublishReadOnly, w.AccessModes = tc.flag, tc.modes }), &csi.Volume{VolumeId: "h"})
			if volume.Spec.CSI.ReadOnly != tc.want {
				t.Errorf("ReadOnly = %v", volume.Spec.CSI.ReadOnly)
			}
		})
	}
}

// newVolume returns the PersistentVolume for the driver's response.
func newVolume(t *testing.T, in provision.Input, volume *csi.Volume) *v1.PersistentVolume {
	t.Helper()
	request, err := provision.Request(in)
	if err != nil {
		t.Fatal(err)
	}
	skeleton := provision.Skeleton(in, request)
	provision.NewAssignment(in.Claim, in.Class).ApplyTo(skeleton, true)
	return provision.Complete(skeleton, request, volume, in.Driver.Topology)
}

func TestVolumeNamesSecretsOfLaterCalls(t *testing.T) {
	gold := "gold"
	reference := func(name string) *v1.SecretReference { return &v1.SecretReference{Name: name, Namespace: "ns"} }
	volume := newVolume(t, input(func(w *provision.Input) {
		w.Class.Provisioner = "kubernetes.io/old"
		w.Claim.Spec.VolumeAttributesClassName = &gold
		w.Settings.Identity = "me"
		w.Secrets = provision.Secrets{Provisioner: reference("p"), ControllerModify: reference("m"),
			NodeStage: reference("s")}
	}), &csi.Volume{VolumeId: "h", VolumeContext: map[string]string{"a": "b"}})
	want := map[string]string{
		"pv.kubernetes.io/provisioned-by": "kubernetes.io/old",
		provision.DeletionSecretName:      "p", provision.DeletionSecretNamespace: "ns",
		"volume.kubernetes.io/controller-modify-secret-name":      "m",
		"volume.kubernetes.io/controller-modify-secret-namespace": "ns",
	}
	if !maps.Equal(volume.Annotations, want) {
		t.Errorf("annotations: %v, want %v", volume.Annotations, want)
	}
	source := volume.Spec.CSI
	if source.NodeStageSecretRef.Name != "s" || source.NodePublishSecretRef != nil ||
		*volume.Spec.VolumeAttributesClassName != gold {
		t.Errorf("spec: %+v", volume.Spec)
	}
	if !maps.Equal(source.VolumeAttributes, map[string]string{"a": "b",
		"storage.kubernetes.io/csiProvisionerIdentity": "me"}) {
		t.Errorf("attributes: %v", source.VolumeAttributes)
	}
}

func TestVolumeWithoutSecretsHasEmptyDeletionAnnotations(t *testing.T) {
	volume := newVolume(t, input(), &csi.Volume{VolumeId: "h"})
	want := map[string]string{"pv.kubernetes.io/provisioned-by": "driver", provision.DeletionSecretName: "",
		provision.DeletionSecretNamespace: ""}
	if !maps.Equal(volume.Annotations, want) {
		t.Errorf("annotations: %v, want %v", volume.Annotations, want)
	}
}

func TestPrintedCredentialsAreHidden(t *testing.T) {
	credentials := provision.Conceal(map[string]string{"password": "hunter2"})
	in := struct {
		Secret provision.Credentials
		hidden provision.Credentials
	}{credentials, credentials}
	if credentials.Reveal()["password"] != "hunter2" || (provision.Credentials{}).Reveal() != nil {
		t.Error("the content is lost")
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, in); strings.Contains(text, "hunter2") {
			t.Errorf("%s prints the secret: %s", format, text)
		}
	}
}

func TestFirstWriteOfDeleteVolumeHasFinalizer(t *testing.T) {
	for name, tc := range map[string]struct {
		policy v1.PersistentVolumeReclaimPolicy
		honor  bool
		want   bool
	}{
		"Delete":                  {v1.PersistentVolumeReclaimDelete, true, true},
		"Retain":                  {v1.PersistentVolumeReclaimRetain, true, false},
		"Delete without the gate": {v1.PersistentVolumeReclaimDelete, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := input(func(w *provision.Input) { w.Class.ReclaimPolicy = &tc.policy })
			volume := newVolume(t, w, &csi.Volume{VolumeId: "h", CapacityBytes: 2 << 30})
			provision.AssignmentOf(volume).ApplyTo(volume, tc.honor)
			if got := finalizer.Has(volume.Finalizers, finalizer.External); got != tc.want {
				t.Errorf("finalizers %v, want External: %v", volume.Finalizers, tc.want)
			}
			if volume.Spec.CSI.VolumeHandle != "h" || volume.Spec.Capacity.Storage().Value() != 2<<30 {
				t.Errorf("volume: %+v", volume.Spec)
			}
		})
	}
}

func TestNodeAffinityFollowsAccessibleTopology(t *testing.T) {
	reachable := &csi.Volume{VolumeId: "h",
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{"zone": "a"}}}}
	volume := newVolume(t, input(func(w *provision.Input) { w.Driver.Topology = true }), reachable)
	if terms := volume.Spec.NodeAffinity.Required.NodeSelectorTerms; len(terms) != 1 ||
		terms[0].MatchExpressions[0].Key != "zone" {
		t.Errorf("terms: %+v", terms)
	}
	if got := newVolume(t, input(), reachable).Spec.NodeAffinity; got != nil {
		t.Errorf("a driver without topology got the affinity %v", got)
	}
}

func TestOutcomeOfEveryCode(t *testing.T) {
	want := map[codes.Code]provision.Outcome{
		codes.InvalidArgument: provision.NoVolume, codes.OutOfRange: provision.NoVolume,
		codes.ResourceExhausted: provision.Unchanged,
		codes.Unimplemented:     provision.Unchanged, codes.PermissionDenied: provision.Unchanged,
		codes.Unauthenticated:    provision.Unchanged,
		codes.FailedPrecondition: provision.NoVolume, codes.NotFound: provision.SourceMissing,
		codes.AlreadyExists: provision.Mismatch,
		codes.Internal:      provision.Uncertain, codes.Unknown: provision.Uncertain, codes.DataLoss: provision.Uncertain,
	}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if got := provision.OutcomeOf(code); got != want[code] {
			t.Errorf("OutcomeOf(%s) = %v, want %v", code, got, want[code])
		}
	}
}

// The skeleton of a journal entry has no empty map, and a forged one may have no CSI source.
func TestVolumeOfStoredSkeletonIsComplete(t *testing.T) {
	for name, source := range map[string]*v1.CSIPersistentVolumeSource{"without attributes": {Driver: "driver"},
		"without a source": nil} {
		skeleton := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{CSI: source}}}
		volume := provision.Complete(skeleton, nil, &csi.Volume{VolumeId: "h", VolumeContext: map[string]string{"a": "b"}},
			false)
		if got := volume.Spec.CSI; got.VolumeHandle != "h" || !maps.Equal(got.VolumeAttributes, map[string]string{"a": "b"}) {
			t.Errorf("%s: handle %s, attributes %v", name, got.VolumeHandle, got.VolumeAttributes)
		}
	}
}

func TestVolumeHasNoEmptyClassAndNoEmptyIdentity(t *testing.T) {
	none := ""
	volume := newVolume(t, input(func(w *provision.Input) { w.Claim.Spec.VolumeAttributesClassName = &none }),
		&csi.Volume{VolumeId: "h"})
	if class, attributes := volume.Spec.VolumeAttributesClassName, volume.Spec.CSI.VolumeAttributes; class != nil ||
		len(attributes) > 0 {
		t.Errorf("attributes class %v, attributes %v, want none", class, attributes)
	}
}
