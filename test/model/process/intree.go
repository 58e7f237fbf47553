package process

import (
	"context"
	"slices"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
)

// PluginName is the name of the in-tree plugin of the model. Its volumes are host-path volumes.
const PluginName = intree.HostPathName

// InTree builds the pv-controller with an in-tree plugin.
func InTree(env *Env) (*Program, error) {
	program, err := pvController(env, hostPath{env.Driver})
	if err != nil {
		return nil, err
	}
	program.Pending = func() bool { // a failed deletion is repeated when time has passed
		return slices.ContainsFunc(program.Loops, func(loop *controller.Stepped) bool {
			_, later := loop.Keys()
			return len(later) > 0
		})
	}
	return program, nil
}

// hostPath is an in-tree plugin whose directories are the disks of the model.
type hostPath struct{ storage Driver }

var (
	_ intree.Provisioner = hostPath{}
	_ intree.Deleter     = hostPath{}
	_ intree.Recycler    = hostPath{}
)

// Name implements [intree.Plugin].
func (hostPath) Name() string { return PluginName }

// Location implements [intree.Plugin].
func (hostPath) Location(volume *v1.PersistentVolume) string { return disk.HostPath(volume) }

// Describe implements [intree.Provisioner]. The path is the handle of the disk with the name.
func (hostPath) Describe(request intree.Request) (*v1.PersistentVolume, error) {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: request.VolumeName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: request.Policy(), AccessModes: request.Claim.Spec.AccessModes,
			Capacity: v1.ResourceList{
				v1.ResourceStorage: request.Claim.Spec.Resources.Requests[v1.ResourceStorage],
			},
			PersistentVolumeSource: v1.PersistentVolumeSource{
				HostPath: &v1.HostPathVolumeSource{Path: "disk-of-" + request.VolumeName},
			},
		},
	}, nil
}

// Create implements [intree.Provisioner].
func (p hostPath) Create(ctx context.Context, volume *v1.PersistentVolume) error {
	_, err := p.storage.CreateVolume(ctx, &spec.CreateVolumeRequest{Name: volume.Name})
	return err
}

// Delete implements [intree.Deleter].
func (p hostPath) Delete(ctx context.Context, volume *v1.PersistentVolume) error {
	return p.storage.DeleteVolume(ctx, disk.HostPath(volume), nil)
}

// RecyclerPod implements [intree.Recycler].
func (p hostPath) RecyclerPod(volume *v1.PersistentVolume) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.RecyclerNamespace(), Name: plugin.RecyclerName(volume),
			Annotations: map[string]string{plugin.RecyclerAnnotation: plugin.DataID(volume)},
		},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "scrub", Image: "scrub"}}},
	}
}

// RecyclerNamespace implements [intree.Recycler].
func (hostPath) RecyclerNamespace() string { return JournalNamespace }
