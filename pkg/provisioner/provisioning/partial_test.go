package provisioning_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/test/controllertest"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// selections are the names of a CSI driver, of one that replaces an in-tree plugin, and of
// a provisioner that is no CSI driver.
var selections = map[string]provisioning.Names{
	"driver":   {Driver: fuzzobj.Driver},
	"other":    {Driver: "other.example.com"},
	"migrated": {Driver: fuzzobj.Driver, Migrated: []string{"kubernetes.io/gce-pd"}, PluginOf: migration.New().PluginOf},
	"static":   {Driver: fuzzobj.Driver, Static: true},
}

// dice returns random bytes for an object.
func dice(random *rand.Rand) *fuzzobj.Choices {
	data := make([]byte, 200)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return fuzzobj.New(data)
}

func TestPartialVolumesAreSelectedAsWholeOnes(t *testing.T) {
	for name, names := range selections {
		t.Run(name, func(t *testing.T) {
			random, rules, owned := rand.New(rand.NewPCG(1, 1)), names.Rules(), 0
			for range 1000 {
				whole := controllertest.WithManagedFields(dice(random).Volume("volume"))
				part := controllertest.Decode(t, rules, whole)
				if names.OwnsVolume(part) != names.OwnsVolume(whole) {
					t.Fatalf("OwnsVolume(part) = %v, part %v of %v", names.OwnsVolume(part), part, whole)
				}
				if part.Name != whole.Name || part.UID != whole.UID || part.ResourceVersion != whole.ResourceVersion ||
					!reflect.DeepEqual(part.Spec.ClaimRef, whole.Spec.ClaimRef) {
					t.Fatalf("%v was decoded as %v", whole, part)
				}
				if !names.OwnsVolume(whole) {
					continue
				}
				owned++
				whole = controllertest.Decode(t, nil, whole)
				if whole.ManagedFields = nil; !reflect.DeepEqual(part, whole) {
					t.Fatalf("own volume %v was decoded as %v", whole, part)
				}
			}
			if owned == 0 || owned == 1000 {
				t.Errorf("%d of 1000 volumes are owned", owned)
			}
		})
	}
}

func TestPartialClaimsAreSelectedAsWholeOnes(t *testing.T) {
	for name, names := range selections {
		t.Run(name, func(t *testing.T) {
			random, rules, owned := rand.New(rand.NewPCG(1, 1)), names.Rules(), 0
			for range 1000 {
				whole := controllertest.WithManagedFields(dice(random).Claim("claim"))
				part := controllertest.Decode(t, rules, whole)
				if names.OwnsClaim(part) != names.OwnsClaim(whole) ||
					protection.NeededSource(part) != protection.NeededSource(whole) {
					t.Fatalf("OwnsClaim(part) = %v, part %v of %v", names.OwnsClaim(part), part, whole)
				}
				if part.Namespace != whole.Namespace || part.Name != whole.Name || part.UID != whole.UID ||
					part.ResourceVersion != whole.ResourceVersion {
					t.Fatalf("%v was decoded as %v", whole, part)
				}
				if !names.OwnsClaim(whole) {
					continue
				}
				owned++
				whole = controllertest.Decode(t, nil, whole)
				if whole.ManagedFields = nil; !reflect.DeepEqual(part, whole) {
					t.Fatalf("own claim %v was decoded as %v", whole, part)
				}
			}
			if owned == 0 || owned == 1000 {
				t.Errorf("%d of 1000 claims are owned", owned)
			}
		})
	}
}

// foreignVolume is a bound volume of another CSI driver.
func foreignVolume() *v1.PersistentVolume {
	return controllertest.WithManagedFields(&v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pvc-0d8ef5c1-4a1d-4f0e-8f43-2f5d8f5d7a55", UID: "7a1f3f2b-66cd-4d3c-bd54-5b7a6a1f0d6e",
			ResourceVersion:   "123456",
			CreationTimestamp: metav1.Unix(1700000000, 0),
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "other.example.com",
				"volume.kubernetes.io/provisioner-deletion-secret-name": "", "volume.kubernetes.io/provisioner-deletion-secret-namespace": ""},
			Finalizers: []string{"kubernetes.io/pv-protection", "external-provisioner.volume.kubernetes.io/finalizer"},
		},
		Spec: v1.PersistentVolumeSpec{
			Capacity:    v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			ClaimRef: &v1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: "default", Name: "data-0", UID: "0d8ef5c1-4a1d-4f0e-8f43-2f5d8f5d7a55", ResourceVersion: "123450"},
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete, StorageClassName: "standard",
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: "other.example.com", VolumeHandle: "vol-0123456789abcdef0", FSType: "ext4",
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "1700000000000-1234-other.example.com"},
			}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
	})
}

func BenchmarkDecodeVolume(b *testing.B) {
	for name, rules := range map[string]partial.Rules{
		"whole": nil, "own": provisioning.Names{Driver: "other.example.com"}.Rules(),
		"foreign": provisioning.Names{Driver: fuzzobj.Driver}.Rules(),
	} {
		b.Run(name, func(b *testing.B) {
			controllertest.MeasureDecode(b, rules, foreignVolume())
		})
	}
}
