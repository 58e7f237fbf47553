package model

import (
	"encoding/json"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/programs"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// placed returns the objects of an API server on which the objects were created, with their
// status. An object with a deletionTimestamp is being deleted.
func placed(creations ...creation) []server.Object {
	c := server.NewCluster()
	for _, create := range creations {
		for _, request := range create.placing() {
			after, response := c.Serve(request)
			if response.Code >= http.StatusBadRequest {
				panic(fmt.Sprintf("place an object of the model: %s", response.Body))
			}
			c = after
		}
	}
	return c.Objects()
}

// placing returns the requests that create the object with its status and, if they are not nil, its
// finalizers, and delete it.
func (c creation) placing() []server.Request {
	create, object := c.request(), c.object.(metav1.Object)
	var with struct{ Status map[string]any }
	if err := json.Unmarshal([]byte(create.Body), &with); err != nil {
		panic(fmt.Sprintf("decode an object of the model: %v", err))
	}
	all, path := []server.Request{create}, c.path+"/"+object.GetName()
	if len(with.Status) > 0 {
		all = append(all, mergePatch(path+"/status", map[string]any{"status": with.Status}))
	}
	if finalizers := object.GetFinalizers(); finalizers != nil {
		all = append(all, mergePatch(path, map[string]any{"metadata": map[string]any{"finalizers": finalizers}}))
	}
	if object.GetDeletionTimestamp() != nil {
		all = append(all, server.Request{Method: http.MethodDelete, Path: path})
	}
	return all
}

// uidOf returns the UID of the first claim with the name.
func uidOf(claim string) types.UID { return types.UID(claimKey(claim).UID(1)) }

// pvcName is the name of the volume that is provisioned for the claim "data".
func pvcName() string { return "pvc-" + string(uidOf("data")) }

// Changes of a new volume.
type volumeChange = func(*v1.PersistentVolume)

// referTo has the volume refer to the claim by its UID, by a controller.
func referTo(claim string) volumeChange {
	return func(volume *v1.PersistentVolume) {
		volume.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: namespace, Name: claim, UID: uidOf(claim)}
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

// Changes of a new claim.
type claimChange = func(*v1.PersistentVolumeClaim)

func claimOf(name, className string, changes ...claimChange) creation {
	c := newClaim(name, className)
	for _, change := range changes {
		change(c.object.(*v1.PersistentVolumeClaim))
	}
	return c
}

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
		claim.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: size}
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

// podOf is a pod on a node that uses the claim.
func podOf(claim string, changes ...func(*v1.Pod)) creation {
	pod := &v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: v1.PodSpec{NodeName: "node-a", Containers: []v1.Container{{Name: "web", Image: "web"}}, Volumes: []v1.Volume{{
			Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
		}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return creation{podsPath, pod}
}

// attachmentOf attaches the volume to a node.
func attachmentOf(volume string) creation {
	return creation{attachmentsPath, &storagev1.VolumeAttachment{
		TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachment"}, ObjectMeta: metav1.ObjectMeta{Name: "attached"},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: process.DriverName, NodeName: "node-a", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}}
}

// placedWorld is a world of both programs that starts with the objects.
func placedWorld(name string, creations ...creation) Config {
	c := base(name)
	all := []creation{newNamespace(namespace), newNamespace(programs.Namespace)}
	c.Objects = placed(append(all, creations...)...)
	return c
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

// ownedByPod is the claim of the ephemeral pod.
func ownedByPod(claim *v1.PersistentVolumeClaim) {
	key := server.Key{Resource: "pods", Namespace: namespace, Name: "web"}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: types.UID(key.UID(1)), Controller: ptr.To(true)}}
}

// interrupted lets a pass be interrupted once.
func interrupted(c *Config) { c.Interruptions++ }

// stalled lets a watch stall once.
func stalled(c *Config) { c.Stalls++ }

// unadmitted is the world without the admission policy.
func (c Config) unadmitted() Config {
	c.Admission = false
	return c
}

// exempt is the world in which a volume is left as it is.
func (c Config) exempt(volume string) Config {
	c.Exempt = append(c.Exempt, types.UID(server.Key{Resource: "persistentvolumes", Name: volume}.UID(1)))
	return c
}

// givenUp is the world in which nobody has to look after the disks that exist at the start.
func (c Config) givenUp() Config {
	c.GivenUp = true
	return c
}
