package provisioner_test

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provisioner"
)

// export provisions directories of an NFS server.
type export struct{ server string }

// Provision implements [controller.Provisioner].
func (e *export) Provision(_ context.Context, options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{
		PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
		AccessModes:                   options.PVC.Spec.AccessModes,
		Capacity:                      options.PVC.Spec.Resources.Requests,
		PersistentVolumeSource:        v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: e.server, Path: "/" + options.PVName}},
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
	client := fake.NewClientset() // kubernetes.NewForConfig in a program
	ctx, stop := context.WithCancel(context.Background())
	c := provisioner.NewProvisionController(klog.Background(), client, "example.com/nfs", &export{server: "files"},
		provisioner.Threadiness(10),
		provisioner.LeaderElection(false),
		provisioner.ProvisionTimeout(time.Minute))
	stop() // on SIGTERM in a program
	fmt.Println(c.Run(ctx))
	// Output: <nil>
}
