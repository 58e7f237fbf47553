package provisioner_test

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provisioner"
)

// export provisions directories of an NFS server.
type export struct{ server string }

// Provision implements [controller.Provisioner].
func (e *export) Provision(_ context.Context,
	options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
		AccessModes:                   options.PVC.Spec.AccessModes,
		Capacity:                      options.PVC.Spec.Resources.Requests,
		PersistentVolumeSource: v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: e.server,
			Path: "/" + options.PVName}},
	}}
	return volume, controller.ProvisioningFinished, nil
}

// Delete implements [controller.Provisioner].
func (e *export) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	if volume.Spec.NFS == nil || volume.Spec.NFS.Server != e.server {
		return &controller.IgnoredError{Reason: "the volume is on another server"}
	}
	return nil
}

func Example() {
	policy := v1.PersistentVolumeReclaimDelete
	client := fake.NewClientset( // kubernetes.NewForConfig in a program
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "nfs"}, Provisioner: "example.com/nfs",
			ReclaimPolicy: &policy},
		&v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "data", UID: "1234",
				Annotations: map[string]string{"volume.kubernetes.io/storage-provisioner": "example.com/nfs"},
				// by the pv-controller
			},
			Spec: v1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("nfs"),
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteMany},
				Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}}},
		})
	volumes, err := client.CoreV1().PersistentVolumes().Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	c := provisioner.NewProvisionController(klog.Background(), client, "example.com/nfs", &export{server: "files"},
		provisioner.Threadiness(10), provisioner.ProvisionTimeout(time.Minute),
		provisioner.LeaderElection(false), provisioner.LeaderElectionNamespace("nfs"),
		provisioner.Journal(false)) // the fake client has no versions, which the journal needs
	ended := make(chan error)
	go func() { ended <- c.Run(ctx) }()

	volume := (<-volumes.ResultChan()).Object.(*v1.PersistentVolume)
	fmt.Println(volume.Name, "on", volume.Spec.NFS.Server, "for", volume.Spec.ClaimRef.Name)
	fmt.Println(volume.Finalizers)
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// pvc-1234 on files for data
	// [external-provisioner.volume.kubernetes.io/finalizer]
	// ended: <nil>
}
