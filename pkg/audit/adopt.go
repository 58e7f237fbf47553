package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// AdoptedClass is the storage class of adopted volumes. The class need not exist.
const AdoptedClass = "exeunt-adopted"

// adoptedNamespace is the namespace in the claim reference of adopted volumes. The
// namespace need not exist.
const adoptedNamespace = "exeunt-adopted"

// RefusedError is why a volume is not adopted.
type RefusedError struct {
	Handle string
	// Reason completes the sentence "volume X is not adopted: ...".
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("volume %q is not adopted: %s", e.Handle, e.Reason)
}

// Adopt returns a PersistentVolume for an orphan, with the policy Retain. Its claim
// reference is that of no claim, so that its phase becomes Released and nothing binds it.
// class has the names of the secrets that the driver needs; nil for none. Any volume that
// is no orphan is a [RefusedError].
func (r *Report) Adopt(handle string, class *storagev1.StorageClass) (*v1.PersistentVolume, error) {
	volume, orphan := r.volumes[handle]
	if !orphan {
		return nil, &RefusedError{handle, r.whyNoOrphan(handle)}
	}
	adopted := r.unclaimed(volume)
	if err := addSecrets(adopted, volume, class); err != nil {
		return nil, err
	}
	return adopted, nil
}

func (r *Report) whyNoOrphan(handle string) string {
	at := slices.IndexFunc(r.Doubtful, func(d Doubt) bool { return d.Handle == handle })
	switch {
	case at >= 0:
		return fmt.Sprintf("it is doubtful, %s: %s", r.Doubtful[at].Reason, explanations[r.Doubtful[at].Reason])
	case !r.Enumerated:
		return "the driver did not list all its volumes"
	}
	return "it is not listed, or a PersistentVolume has its handle"
}

// explanations say why a volume with the reason may be needed.
var explanations = map[verdict.Reason]string{
	verdict.Attached:         "a node uses it",
	verdict.SnapshotSource:   "a snapshot was taken of it",
	verdict.CloneSource:      "another volume was cloned from it",
	verdict.InlineVolume:     "a pod has it without a claim",
	verdict.HandleAlike:      "a used handle differs in case, project, path or zone only",
	verdict.CreationInFlight: "a claim or a journal entry may be about it",
	verdict.Unresolved:       "what refers to it could not be found out",
	verdict.SeenOnce:         "only one of the two lists has it",
}

// unclaimed returns the PersistentVolume without secrets. Its name and the UID in its claim
// reference depend on driver and handle alone: adopting a volume twice is refused by the
// API server.
func (r *Report) unclaimed(volume Volume) *v1.PersistentVolume {
	sum := sha256.Sum256([]byte(r.Driver + "\x00" + volume.Handle))
	name := "adopted-" + hex.EncodeToString(sum[:10])
	size := max(volume.Size, 1) // the API requires a size
	return &v1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			storage.AnnDynamicallyProvisioned: r.Driver, // csi-provisioner deletes no volume without
			provision.DeletionSecretName:      "",
			provision.DeletionSecretNamespace: "",
		}},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimRetain,
			StorageClassName:              AdoptedClass,
			AccessModes:                   []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Capacity:                      v1.ResourceList{v1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)},
			ClaimRef: &v1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: adoptedNamespace, Name: name, UID: unusedUID(sum)},
			NodeAffinity: topology.Affinity(volume.topology),
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: r.Driver, VolumeHandle: volume.Handle, VolumeAttributes: volume.Context,
			}},
		},
	}
}

// unusedUID returns a UID of version 8, which the API server gives to no object.
func unusedUID(sum [sha256.Size]byte) types.UID {
	id := sum[16:]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16]))
}

// addSecrets names the secrets of the class. The claim of the volume is not known, so the
// class must not derive their names from a claim.
func addSecrets(adopted *v1.PersistentVolume, volume Volume, class *storagev1.StorageClass) error {
	if class == nil {
		return nil
	}
	for key, value := range class.Parameters {
		switch {
		case strings.Contains(value, "${pvc."):
			return fmt.Errorf("parameter %s of storage class %s is built from the claim, which is not known: adopt volume %q without --storage-class and write the names of its secrets by hand", key, class.Name, volume.Handle)
		case strings.Contains(value, "${pv.name}") && volume.Name == "":
			return fmt.Errorf("parameter %s of storage class %s is built from the name of the volume, and that of volume %q is not known: adopt it without --storage-class and write the names of its secrets by hand", key, class.Name, volume.Handle)
		}
	}
	secrets, err := provision.SecretsOf(class, &v1.PersistentVolumeClaim{}, volume.Name)
	if err != nil {
		return err
	}
	if secret := secrets.Provisioner; secret != nil {
		adopted.Annotations[provision.DeletionSecretName] = secret.Name
		adopted.Annotations[provision.DeletionSecretNamespace] = secret.Namespace
	}
	source := adopted.Spec.CSI
	source.ControllerPublishSecretRef, source.ControllerExpandSecretRef = secrets.ControllerPublish,
		secrets.ControllerExpand
	source.NodeStageSecretRef, source.NodePublishSecretRef, source.NodeExpandSecretRef = secrets.NodeStage,
		secrets.NodePublish, secrets.NodeExpand
	adopted.Spec.MountOptions = class.MountOptions
	return nil
}
