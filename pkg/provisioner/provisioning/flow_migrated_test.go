package provisioning

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// oldPlugin is the name of the migrated in-tree plugin.
const oldPlugin = "kubernetes.io/old"

// twisted is a translator that returns other handles than the driver, as for GCE, vSphere and
// AzureFile.
type twisted struct{ plugin }

func (twisted) Class(_ context.Context, class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	class = class.DeepCopy()
	class.Provisioner = csimock.DefaultName
	return class, nil
}

func (twisted) InTree(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	volume = volume.DeepCopy()
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: volume.Spec.CSI.VolumeHandle}}
	return volume, nil
}

func (t twisted) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	volume, err := t.plugin.Volume(volume)
	if err == nil {
		volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle = csimock.DefaultName,
			"unspecified/"+volume.Spec.CSI.VolumeHandle
	}
	return volume, err
}

// newMigratedFlow returns a flow for a claim with a class of the plugin.
func newMigratedFlow(t *testing.T) *flow {
	t.Helper()
	f := newFlow(t)
	f.translator = twisted{}
	claim := f.syncClaim().DeepCopy()
	claim.Annotations = map[string]string{storage.AnnStorageProvisioner: oldPlugin,
		storage.AnnMigratedTo: csimock.DefaultName}
	_, err := f.client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), claim, metav1.UpdateOptions{})
	f.must(err)
	class, err := f.client.StorageV1().StorageClasses().Get(t.Context(), "class", metav1.GetOptions{})
	f.must(err)
	f.must(f.client.StorageV1().StorageClasses().Delete(t.Context(), "class", metav1.DeleteOptions{}))
	class.Provisioner = oldPlugin
	_, err = f.client.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{})
	f.must(err)
	f.restart()
	return f
}

func TestMigratedVolumeWithOtherHandleIsAccepted(t *testing.T) {
	for name, late := range map[string]bool{"seen by the cache": false, "read live": true} {
		t.Run(name, func(t *testing.T) {
			f := newMigratedFlow(t)
			f.failNext("create", "persistentvolumes", true)
			f.reconcile(true)
			if late {
				f.must(f.Volumes.GetStore().Replace(nil, ""))
			}
			f.reconcile(false)
			f.expect(1, 1, anyNumber, 0)
			if events := f.takeEvents(); strings.Contains(events, "left alone") && !late {
				t.Errorf("the own volume counts as another volume: %s", events)
			}
			volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
			f.must(err)
			f.volumeChanged(nil, volume)
			if len(f.memory.handles) > 0 {
				t.Errorf("the handles %v stay reserved", f.memory.handles)
			}
		})
	}
}

func TestSharedDiskIsNotDiscarded(t *testing.T) {
	for name, source := range map[string]func(handle string) v1.PersistentVolumeSource{
		"in-tree source": func(handle string) v1.PersistentVolumeSource {
			return v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: handle}}
		},
		"CSI source": func(handle string) v1.PersistentVolumeSource {
			return v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName,
				VolumeHandle: handle}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newMigratedFlow(t)
			f.failNext("create", "persistentvolumes", false)
			f.reconcile(true)
			other := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}
			other.Spec.PersistentVolumeSource = source(f.mock.Volumes()[0].ID)
			_, err := f.client.CoreV1().PersistentVolumes().Create(t.Context(), other, metav1.CreateOptions{})
			f.must(err)
			f.must(f.Volumes.GetStore().Replace(nil, "")) // the watch is late
			f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "another" })
			_ = f.Reconcile(context.Background(), flowClaim)
			if len(f.mock.Volumes()) != 1 {
				t.Error("the disk of another volume is deleted")
			}
		})
	}
}
