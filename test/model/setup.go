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
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/programs"
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
	leasesPath     = "/apis/coordination.k8s.io/v1/namespaces/" + programs.Namespace + "/leases"
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

func newNamespace(name string) creation {
	return creation{namespacesPath, &v1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}}
}

func newClass(policy v1.PersistentVolumeReclaimPolicy) creation {
	return creation{classesPath, &storagev1.StorageClass{
		TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"}, ObjectMeta: metav1.ObjectMeta{Name: class},
		Provisioner: process.DriverName, ReclaimPolicy: &policy, VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate),
	}}
}

// size is the size of all volumes.
var size = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}

func newClaim(name, className string) creation {
	return creation{claimsPath, &v1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Resources: v1.VolumeResourceRequirements{Requests: size}, StorageClassName: &className,
		},
	}}
}

func newVolume(name string, policy v1.PersistentVolumeReclaimPolicy, change ...func(*v1.PersistentVolume)) creation {
	volume := &v1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, Capacity: size, PersistentVolumeReclaimPolicy: policy,
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: process.DriverName, VolumeHandle: "disk-of-" + name}},
		},
	}
	for _, f := range change {
		f(volume)
	}
	return creation{volumesPath, volume}
}
