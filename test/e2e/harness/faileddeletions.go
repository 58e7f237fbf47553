package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// CreateUndeletableVolumes creates count volumes without a claim whose deletion fails,
// and waits until each is Released or Failed. The driver rejects the handle of one half;
// the paths of the other half are outside the directory of the host-path plugin.
func (s *Session) CreateUndeletableVolumes(count int) []string {
	s.T.Helper()
	volumes := make([]string, count)
	var group errgroup.Group
	group.SetLimit(32)
	for i := range count {
		volume := s.undeletable(i)
		volumes[i] = volume.Name
		group.Go(func() error {
			_, err := s.Client.CoreV1().PersistentVolumes().Create(s.Ctx, volume, metav1.CreateOptions{})
			return err
		})
	}
	s.Must(group.Wait(), "create volumes")
	s.awaitReleasedOrFailed(volumes)
	return volumes
}

// awaitReleasedOrFailed waits until all of the volumes are Released or Failed.
func (s *Session) awaitReleasedOrFailed(volumes []string) {
	s.T.Helper()
	waiting := sets.New(volumes...)
	source := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "persistentvolumes", "", fields.Everything())
	_, err := watchtools.UntilWithSync(s.Ctx, source, &v1.PersistentVolume{}, nil, func(event watch.Event) (bool, error) {
		if v, ok := event.Object.(*v1.PersistentVolume); ok && (v.Status.Phase == v1.VolumeReleased ||
			v.Status.Phase == v1.VolumeFailed) {
			waiting.Delete(v.Name)
		}
		return waiting.Len() == 0, nil
	})
	s.Must(err, fmt.Sprintf("wait until all volumes are Released or Failed (%d are not)", waiting.Len()))
}

// undeletable returns a volume that the driver rejects, or the plugin if i is odd.
func (s *Session) undeletable(i int) *v1.PersistentVolume {
	volume := s.NewVolume(fmt.Sprintf("undeletable-%d", i), v1.PersistentVolumeReclaimDelete)
	volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.Namespace, Name: "gone",
		UID: types.UID(fmt.Sprintf("gone-%d", i))}
	if i%2 == 0 {
		volume.Spec.CSI.VolumeHandle = fmt.Sprintf("%d-%s", i, strings.Repeat("x", 300))
		return volume
	}
	volume.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/host-path"}
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: fmt.Sprintf("/nowhere/%d", i)}}
	return volume
}

// Directory creates a directory with a file in the root of the host-path plugin. The
// test removes it at the end.
func (s *Session) Directory() string {
	s.T.Helper()
	dir, err := os.MkdirTemp(intree.HostPathRoot, "exeunt-volume-")
	s.Must(err, "make directory")
	s.T.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.Must(os.WriteFile(filepath.Join(dir, "data"), []byte("x"), 0o600), "write data")
	return dir
}

// HostPath makes a volume a host-path volume of the path.
func HostPath(path string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}}
	}
}

// ProvisionedBy annotates a volume as provisioned by the plugin.
func ProvisionedBy(plugin string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		metav1.SetMetaDataAnnotation(&v.ObjectMeta, storage.AnnDynamicallyProvisioned, plugin)
	}
}

// ExpectData fails the test unless the directory exists as wanted.
func (s *Session) ExpectData(path string, wanted bool) {
	s.T.Helper()
	_, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		s.T.Fatal(err)
	case wanted != (err == nil):
		s.T.Errorf("%s exists: %v, want %v", path, err == nil, wanted)
	}
}
