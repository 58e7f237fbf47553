package fuzzobj

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Few names, so that objects often refer to each other.
const (
	// Namespace of claims and pods.
	Namespace = "ns"
	// Driver is the CSI driver.
	Driver = "csi.example.com"
)

// annotated has the annotations that our programs read.
var annotated = []string{
	"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "pv.kubernetes.io/provisioned-by",
	"pv.kubernetes.io/migrated-to", "volume.kubernetes.io/selected-node", "exeunt.io/reclaim",
	v1.BetaStorageClassAnnotation, "volume.alpha.kubernetes.io/pre-resize-capacity",
	"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner",
}

var finalizers = []string{
	"external-provisioner.volume.kubernetes.io/finalizer", "kubernetes.io/pv-controller", "kubernetes.io/pv-protection",
	"kubernetes.io/pvc-protection", "example.com/mine",
	"provisioner.storage.kubernetes.io/cloning-protection",
}

func (d *Choices) meta(name string, uids ...types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, UID: Pick(d, uids...), ResourceVersion: "1",
		DeletionTimestamp: d.deletion(),
		Labels:            d.labels(),
		Finalizers:        some(d, finalizers...),
		Annotations: d.annotations(annotated,
			"yes", "", Driver, "kubernetes.io/host-path", "kubernetes.io/gce-pd", "kubernetes.io/rbd", "other.example.com", "c0",
			"1Gi", "pending", "done"),
	}
}

// Claim returns a claim with the name.
func (d *Choices) Claim(name string) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: d.meta(name, types.UID(name), types.UID(name+"-of-old"), "")}
	claim.Namespace = Namespace
	claim.Spec = v1.PersistentVolumeClaimSpec{
		StorageClassName:          pointer(Pick(d, "", "-", "c0", "c1", "nowhere")),
		VolumeName:                Pick(d, "", "v0", "v1", "v2", "nowhere", name),
		AccessModes:               d.modes(),
		VolumeMode:                d.volumeMode(),
		Selector:                  d.selector(),
		VolumeAttributesClassName: pointer(Pick(d, "-", "", "fast")),
		Resources:                 v1.VolumeResourceRequirements{Requests: d.storage()},
	}
	claim.Status = v1.PersistentVolumeClaimStatus{
		Phase:                            Pick(d, v1.ClaimPending, "", v1.ClaimBound, v1.ClaimLost, "Odd"),
		AccessModes:                      d.modes(),
		Capacity:                         d.storage(),
		CurrentVolumeAttributesClassName: pointer(Pick(d, "-", "", "fast")),
	}
	claim.Spec.DataSource, claim.Spec.DataSourceRef = d.dataSource(), d.dataSourceRef()
	return claim
}

func (d *Choices) dataSource() *v1.TypedLocalObjectReference {
	group := pointer(Pick(d, "-", "", "snapshot.storage.k8s.io", "example.com"))
	name := Pick(d, "p0", "p1", "s0", "gone", "")
	return Pick(d, nil,
		&v1.TypedLocalObjectReference{APIGroup: group, Kind: "PersistentVolumeClaim", Name: name},
		&v1.TypedLocalObjectReference{APIGroup: group, Kind: "VolumeSnapshot", Name: name},
		&v1.TypedLocalObjectReference{APIGroup: group, Kind: "Book", Name: name})
}

func (d *Choices) dataSourceRef() *v1.TypedObjectReference {
	source := d.dataSource()
	if source == nil {
		return nil
	}
	return &v1.TypedObjectReference{
		APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name,
		Namespace: pointer(Pick(d, "-", "", Namespace, "elsewhere")),
	}
}

// Volume returns a volume with the name.
func (d *Choices) Volume(name string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{ObjectMeta: d.meta(name, types.UID(name), "")}
	volume.Spec = v1.PersistentVolumeSpec{
		Capacity:    d.storage(),
		AccessModes: d.modes(),
		ClaimRef:    d.claimRef(name),
		PersistentVolumeReclaimPolicy: Pick(d, v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRetain,
			v1.PersistentVolumeReclaimRecycle, "", "Burn"),
		StorageClassName:          Pick(d, "", "c0", "c1", "nowhere"),
		VolumeMode:                d.volumeMode(),
		VolumeAttributesClassName: pointer(Pick(d, "-", "", "fast")),
		PersistentVolumeSource:    d.source(name),
	}
	volume.Status = v1.PersistentVolumeStatus{
		Phase:   Pick(d, v1.VolumeAvailable, "", v1.VolumePending, v1.VolumeBound, v1.VolumeReleased, v1.VolumeFailed, "Odd"),
		Message: Pick(d, "", "something went wrong"),
	}
	return volume
}

func (d *Choices) claimRef(volume string) *v1.ObjectReference {
	refer := func(namespace, name string, uid types.UID) *v1.ObjectReference {
		return &v1.ObjectReference{Kind: Pick(d, "PersistentVolumeClaim", "", "Pod"), Namespace: namespace, Name: name,
			UID: uid}
	}
	name := Pick(d, "p0", "p1", "gone", "", volume)
	return Pick(d, nil,
		refer(Namespace, name, types.UID(name)), refer(Namespace, name, ""),
		refer(Namespace, name, types.UID(name+"-of-old")),
		refer("elsewhere", name, types.UID(name)), refer("", name, ""), &v1.ObjectReference{})
}

func (d *Choices) source(name string) v1.PersistentVolumeSource {
	return Pick(d,
		v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: Driver, VolumeHandle: name}},
		v1.PersistentVolumeSource{},
		v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: Driver, VolumeHandle: "shared"}},
		v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "other.example.com", VolumeHandle: name}},
		v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{}},
		v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/nowhere/" + name}},
		v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{}},
		v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "nowhere", Path: "/"}},
		v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: name}},
		v1.PersistentVolumeSource{RBD: &v1.RBDPersistentVolumeSource{}})
}

// Class returns a storage class with the name.
func (d *Choices) Class(name string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: "1",
			Annotations: d.annotations([]string{"storageclass.kubernetes.io/is-default-class"}, "true", "false", "maybe"),
		},
		Provisioner: Pick(d, Driver, "kubernetes.io/no-provisioner", "kubernetes.io/gce-pd", "kubernetes.io/host-path",
			"", name),
		VolumeBindingMode: pointer(Pick[storagev1.VolumeBindingMode](d, "-", storagev1.VolumeBindingImmediate,
			storagev1.VolumeBindingWaitForFirstConsumer, "Someday")),
		ReclaimPolicy: pointer(Pick[v1.PersistentVolumeReclaimPolicy](d, "-", v1.PersistentVolumeReclaimDelete, "Burn")),
	}
}

// Pod returns a pod with the name.
func (d *Choices) Pod(name string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, UID: types.UID(name),
		ResourceVersion: "1", DeletionTimestamp: d.deletion()}}
	pod.Spec.NodeName = Pick(d, "node", "")
	grace := int64(d.Below(3))
	pod.DeletionGracePeriodSeconds = Pick(d, nil, &grace)
	pod.Status.Phase = Pick(d, v1.PodRunning, v1.PodPending, v1.PodSucceeded, v1.PodFailed, "")
	claim := &v1.PersistentVolumeClaimVolumeSource{ClaimName: Pick(d, "p0", "p1", "gone", "")}
	pod.Spec.Volumes = some(d,
		v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: claim}},
		v1.Volume{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}},
		v1.Volume{})
	return pod
}
