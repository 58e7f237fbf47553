package model

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// Changes of a new volume.
type volumeChange = func(*v1.PersistentVolume)

// claimedBy reserves a volume for a claim.
func claimedBy(claim string) func(*v1.PersistentVolume) {
	return func(volume *v1.PersistentVolume) {
		volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: namespace, Name: claim}
	}
}

// provisionedBy has the annotation that names the provisioner of a volume.
func provisionedBy(volume *v1.PersistentVolume) {
	volume.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: process.DriverName}
}

// provisioned is a volume that the provisioner created earlier.
func provisioned(volume *v1.PersistentVolume) {
	provisionedBy(volume)
	volume.Finalizers = []string{string(finalizer.External)}
}

// referTo has the volume refer to the claim by its UID, by a controller.
func referTo(claim string) volumeChange {
	return func(volume *v1.PersistentVolume) {
		volume.Spec.ClaimRef = &v1.ObjectReference{
			Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: namespace, Name: claim, UID: uidOf(claim),
		}
		annotate(&volume.ObjectMeta, storage.AnnBoundByController, "yes")
	}
}

// referToOlder has the volume refer to an earlier claim of the name.
func referToOlder(volume *v1.PersistentVolume) {
	referTo("data")(volume)
	volume.Spec.ClaimRef.UID = "uid-of-an-earlier-claim"
}

// reservedBy leaves out that a controller chose the claim.
func reservedByUser(volume *v1.PersistentVolume) {
	delete(volume.Annotations, storage.AnnBoundByController)
}

func inPhase(phase v1.PersistentVolumePhase) volumeChange {
	return func(volume *v1.PersistentVolume) { volume.Status.Phase = phase }
}

func volumeWith(names ...finalizer.Name) volumeChange {
	return func(volume *v1.PersistentVolume) { setFinalizers(&volume.ObjectMeta, names) }
}

func deletedVolume(volume *v1.PersistentVolume) { markDeleted(&volume.ObjectMeta) }

func byDriver(volume *v1.PersistentVolume) {
	annotate(&volume.ObjectMeta, storage.AnnDynamicallyProvisioned, process.DriverName)
	volume.Spec.StorageClassName = class
}

func volumeNote(key, value string) volumeChange {
	return func(volume *v1.PersistentVolume) { annotate(&volume.ObjectMeta, key, value) }
}

// onDisk has the volume stand for the disk of another one.
func onDisk(name string) volumeChange {
	return func(volume *v1.PersistentVolume) { volume.Spec.CSI.VolumeHandle = diskPrefix + name }
}

// sealed has the volume name a secret in the namespace for its deletion.
func sealed(namespace string) volumeChange {
	return func(volume *v1.PersistentVolume) {
		annotate(&volume.ObjectMeta, provision.DeletionSecretName, "secret")
		annotate(&volume.ObjectMeta, provision.DeletionSecretNamespace, namespace)
	}
}

// otherDriver has the volume belong to another CSI driver.
func otherDriver(volume *v1.PersistentVolume) {
	volume.Spec.CSI.Driver = "other.example.com"
	annotate(&volume.ObjectMeta, storage.AnnDynamicallyProvisioned, "other.example.com")
}

// onPath has the volume be a directory; byPlugin has the plugin have provisioned it.
func onPath(volume *v1.PersistentVolume) {
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{
		HostPath: &v1.HostPathVolumeSource{Path: diskPrefix + "disk"},
	}
}

func byPlugin(volume *v1.PersistentVolume) {
	onPath(volume)
	annotate(&volume.ObjectMeta, storage.AnnDynamicallyProvisioned, process.PluginName)
	volume.Spec.StorageClassName = class
}

// missingPlugin has the volume belong to an in-tree plugin that no program has.
func missingPlugin(volume *v1.PersistentVolume) {
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{
		Server: "server", Path: "/disk",
	}}
	annotate(&volume.ObjectMeta, storage.AnnDynamicallyProvisioned, "kubernetes.io/nfs")
}

// Changes of a new claim.
type claimChange = func(*v1.PersistentVolumeClaim)

// naming has the claim name its volume; complete has it bound once.
func naming(volume string) claimChange {
	return func(claim *v1.PersistentVolumeClaim) { claim.Spec.VolumeName = volume }
}

func complete(claim *v1.PersistentVolumeClaim) {
	annotate(&claim.ObjectMeta, storage.AnnBindCompleted, "yes")
}

// boundTo is a claim that is Bound to the volume; lost is one that was.
func boundTo(volume string) claimChange {
	return func(claim *v1.PersistentVolumeClaim) {
		naming(volume)(claim)
		complete(claim)
		annotate(&claim.ObjectMeta, storage.AnnBoundByController, "yes")
		claim.Status = v1.PersistentVolumeClaimStatus{
			Phase: v1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: size,
		}
	}
}

func lost(claim *v1.PersistentVolumeClaim) {
	complete(claim)
	claim.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimLost}
}

func claimWith(names ...finalizer.Name) claimChange {
	return func(claim *v1.PersistentVolumeClaim) { setFinalizers(&claim.ObjectMeta, names) }
}

func deletedClaim(claim *v1.PersistentVolumeClaim) { markDeleted(&claim.ObjectMeta) }

func claimNote(key, value string) claimChange {
	return func(claim *v1.PersistentVolumeClaim) { annotate(&claim.ObjectMeta, key, value) }
}

// namesDriver is a claim that names its provisioner.
func namesDriver(claim *v1.PersistentVolumeClaim) {
	annotate(&claim.ObjectMeta, storage.AnnStorageProvisioner, process.DriverName)
	annotate(&claim.ObjectMeta, storage.AnnBetaStorageProvisioner, process.DriverName)
}

func withoutClass(claim *v1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil }

// ownedByPod is the claim of the ephemeral pod.
func ownedByPod(claim *v1.PersistentVolumeClaim) {
	key := server.Key{Resource: "pods", Namespace: namespace, Name: "web"}
	claim.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Pod", Name: "web", UID: types.UID(key.UID(1)), Controller: ptr.To(true),
	}}
}

// Changes of a new pod.
func onNoNode(pod *v1.Pod) { pod.Spec.NodeName = "" }

// ephemeral has the pod own its claim.
func ephemeral(pod *v1.Pod) {
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
	pod.Name = "web"
}

// terminated is a pod that the kubelet has terminated.
func terminated(pod *v1.Pod) {
	setFinalizers(&pod.ObjectMeta, []finalizer.Name{"example.com/backup"})
	markDeleted(&pod.ObjectMeta)
}

func annotate(meta *metav1.ObjectMeta, key, value string) {
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[key] = value
}

func setFinalizers(meta *metav1.ObjectMeta, names []finalizer.Name) {
	meta.Finalizers = []string{}
	for _, name := range names {
		meta.Finalizers = append(meta.Finalizers, string(name))
	}
}

func markDeleted(meta *metav1.ObjectMeta) {
	now := metav1.Now()
	meta.DeletionTimestamp = &now
}
