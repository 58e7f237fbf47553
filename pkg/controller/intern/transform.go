package intern

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Transformer removes managedFields, and lets volumes and claims share equal parts. All
// informers of a process can use the same one. It is safe for concurrent use.
type Transformer struct {
	parts parts
}

// New returns a transformer with empty tables.
func New() *Transformer { return &Transformer{} }

// Transform is an informer transform.
func (t *Transformer) Transform(object any) (any, error) {
	switch object := object.(type) {
	case *v1.PersistentVolume:
		t.parts.volume(object)
	case *v1.PersistentVolumeClaim:
		t.parts.claim(object)
	}
	return controller.StripManagedFields(object)
}

func (p *parts) metadata(m *metav1.ObjectMeta) {
	str(p, &m.Namespace)
	str(p, &m.GenerateName)
	m.Labels, m.Annotations = p.stringMap(m.Labels), p.stringMap(m.Annotations)
	m.Finalizers = list(p, &p.lists, m.Finalizers)
	p.owners(m.OwnerReferences)
}

func (p *parts) volume(volume *v1.PersistentVolume) {
	p.metadata(&volume.ObjectMeta)
	spec := &volume.Spec
	str(p, &spec.PersistentVolumeReclaimPolicy)
	str(p, &spec.StorageClassName)
	spec.AccessModes, spec.MountOptions = list(p, &p.modes, spec.AccessModes), list(p, &p.lists, spec.MountOptions)
	spec.Capacity = p.resourceList(spec.Capacity)
	spec.VolumeMode = pointer(&p.volumeMode, spec.VolumeMode)
	spec.VolumeAttributesClassName = pointer(&p.classes, spec.VolumeAttributesClassName)
	spec.NodeAffinity = p.affinity(spec.NodeAffinity)
	str(p, &volume.Status.Phase)
	if spec.CSI != nil {
		p.csi(spec.CSI)
	}
	if ref := spec.ClaimRef; ref != nil {
		p.reference(ref)
		ref.UID = partOf(volume.Name, ref.UID)
	}
}

func (p *parts) csi(source *v1.CSIPersistentVolumeSource) {
	str(p, &source.Driver)
	str(p, &source.FSType)
	source.VolumeAttributes = p.stringMap(source.VolumeAttributes)
	for _, secret := range []**v1.SecretReference{
		&source.ControllerPublishSecretRef, &source.NodeStageSecretRef, &source.NodePublishSecretRef,
		&source.ControllerExpandSecretRef, &source.NodeExpandSecretRef,
	} {
		*secret = p.secret(*secret)
	}
}

func (p *parts) reference(ref *v1.ObjectReference) {
	str(p, &ref.Kind)
	str(p, &ref.APIVersion)
	str(p, &ref.Namespace)
}

func (p *parts) claim(claim *v1.PersistentVolumeClaim) {
	p.metadata(&claim.ObjectMeta)
	claim.UID = partOf(claim.Spec.VolumeName, claim.UID)
	spec, status := &claim.Spec, &claim.Status
	spec.AccessModes, status.AccessModes = list(p, &p.modes, spec.AccessModes), list(p, &p.modes, status.AccessModes)
	spec.Resources.Requests, spec.Resources.Limits = p.resourceList(spec.Resources.Requests),
		p.resourceList(spec.Resources.Limits)
	status.Capacity, status.AllocatedResources = p.resourceList(status.Capacity), p.resourceList(status.AllocatedResources)
	spec.StorageClassName = pointer(&p.classes, spec.StorageClassName)
	spec.VolumeAttributesClassName = pointer(&p.classes, spec.VolumeAttributesClassName)
	status.CurrentVolumeAttributesClassName = pointer(&p.classes, status.CurrentVolumeAttributesClassName)
	spec.VolumeMode = pointer(&p.volumeMode, spec.VolumeMode)
	str(p, &status.Phase)
}

// partOf returns the UID as a part of a volume's name: pvc- and the UID of its claim.
func partOf[T ~string](volume string, uid T) T {
	if rest, named := strings.CutPrefix(volume, "pvc-"); named && rest == string(uid) {
		return T(rest)
	}
	return uid
}
