package model

import (
	"encoding/json"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// Names of the objects of the model.
const (
	namespace = "shop"
	class     = "fast"
)

// Paths of the resources.
const (
	volumesPath    = "/api/v1/persistentvolumes"
	claimsPath     = "/api/v1/namespaces/" + namespace + "/persistentvolumeclaims"
	podsPath       = "/api/v1/namespaces/" + namespace + "/pods"
	namespacesPath = "/api/v1/namespaces"
	classesPath    = "/apis/storage.k8s.io/v1/storageclasses"
	leasesPath     = "/apis/coordination.k8s.io/v1/namespaces/" + process.JournalNamespace + "/leases"
)

const attachmentsPath = "/apis/storage.k8s.io/v1/volumeattachments"

// The reclaim policies of most volumes.
const (
	keep   = v1.PersistentVolumeReclaimRetain
	remove = v1.PersistentVolumeReclaimDelete
)

// creation is an object that a user creates.
type creation struct {
	path   string
	object runtime.Object
}

func (c creation) request() server.Request {
	body, err := json.Marshal(c.object)
	if err != nil {
		panic(fmt.Sprintf("encode an object of the model: %v", err))
	}
	return server.Request{Method: http.MethodPost, Path: c.path, ContentType: "application/json", Body: string(body)}
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

// cluster returns the objects of an API server on which the objects were created.
func cluster(creations ...creation) []server.Object {
	c := server.NewCluster()
	for _, create := range creations {
		after, response := c.Serve(create.request())
		if response.Code >= http.StatusBadRequest {
			panic(fmt.Sprintf("create an object of the model: %s", response.Body))
		}
		c = after
	}
	return c.Objects()
}

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

// placedWorld is a world of both programs that starts with the objects.
func placedWorld(name string, creations ...creation) Config {
	c := base(name)
	all := []creation{newNamespace(namespace), newNamespace(process.JournalNamespace)}
	c.Objects = placed(append(all, creations...)...)
	return c
}

func newNamespace(name string) creation {
	return creation{namespacesPath, &v1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name},
	}}
}

func newClass(policy v1.PersistentVolumeReclaimPolicy) creation {
	return creation{classesPath, &storagev1.StorageClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: class},
		Provisioner: process.DriverName, ReclaimPolicy: &policy, VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}}
}

func newClassNamed(name string, policy v1.PersistentVolumeReclaimPolicy) creation {
	return creation{classesPath, &storagev1.StorageClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Provisioner: process.DriverName, ReclaimPolicy: &policy, VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}}
}

// size is the size of all volumes.
var size = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}

func newClaim(name, className string) creation {
	return creation{claimsPath, &v1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: size}, StorageClassName: &className,
		},
	}}
}

func claimOf(name, className string, changes ...claimChange) creation {
	c := newClaim(name, className)
	for _, change := range changes {
		change(c.object.(*v1.PersistentVolumeClaim))
	}
	return c
}

func newVolume(name string, policy v1.PersistentVolumeReclaimPolicy, change ...func(*v1.PersistentVolume)) creation {
	volume := &v1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Capacity: size,
			PersistentVolumeReclaimPolicy: policy,
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: process.DriverName, VolumeHandle: "disk-of-" + name,
			}},
		},
	}
	for _, f := range change {
		f(volume)
	}
	return creation{volumesPath, volume}
}

// podOf is a pod on a node that uses the claim.
func podOf(claim string, changes ...func(*v1.Pod)) creation {
	pod := &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: v1.PodSpec{NodeName: "node-a", Containers: []v1.Container{{Name: "web", Image: "web"}}, Volumes: []v1.Volume{{
			Name: "data", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			},
		}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return creation{podsPath, pod}
}

func newPod(claim string) creation {
	return creation{podsPath, &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claim},
		Spec: v1.PodSpec{
			NodeName: "node", Containers: []v1.Container{{Name: "c", Image: "i"}},
			Volumes: []v1.Volume{{
				Name:         "v",
				VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}},
			}},
		},
	}}
}

// attachmentOf attaches the volume to a node.
func attachmentOf(volume string) creation {
	return creation{attachmentsPath, &storagev1.VolumeAttachment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachment"},
		ObjectMeta: metav1.ObjectMeta{Name: "attached"},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: process.DriverName, NodeName: "node-a",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}}
}

func newAttachment(volume string) creation {
	return creation{attachmentsPath, &storagev1.VolumeAttachment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachment"},
		ObjectMeta: metav1.ObjectMeta{Name: "of-" + volume},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: process.DriverName, NodeName: "node",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}}
}

// uidOf returns the UID of the first claim with the name.
func uidOf(claim string) types.UID { return types.UID(claimKey(claim).UID(1)) }

// pvcName is the name of the volume that is provisioned for the claim "data".
func pvcName() string { return "pvc-" + string(uidOf("data")) }

func claimKey(name string) server.Key {
	return server.Key{Resource: "persistentvolumeclaims", Namespace: namespace, Name: name}
}
