package harness

import (
	"fmt"
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

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// CreateUndeletableVolumes makes so many volumes whose claim is gone and whose deletion fails
// again and again, and waits until each has been tried: half of them of the driver,
// which refuses their handle, half host paths outside of where the plugin deletes.
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
	s.awaitFinalizersRemoved(volumes)
	return volumes
}

// awaitFinalizersRemoved watches until all of the volumes are Released or Failed.
func (s *Session) awaitFinalizersRemoved(volumes []string) {
	s.T.Helper()
	waiting := sets.New(volumes...)
	source := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "persistentvolumes", "", fields.Everything())
	_, err := watchtools.UntilWithSync(s.Ctx, source, &v1.PersistentVolume{}, nil, func(event watch.Event) (bool, error) {
		if v, ok := event.Object.(*v1.PersistentVolume); ok && (v.Status.Phase == v1.VolumeReleased || v.Status.Phase == v1.VolumeFailed) {
			waiting.Delete(v.Name)
		}
		return waiting.Len() == 0, nil
	})
	s.Must(err, fmt.Sprintf("wait until all volumes were let go of (%d were not)", waiting.Len()))
}

func (s *Session) undeletable(i int) *v1.PersistentVolume {
	volume := s.NewVolume(fmt.Sprintf("undeletable-%d", i), v1.PersistentVolumeReclaimDelete)
	volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.Namespace, Name: "gone", UID: types.UID(fmt.Sprintf("gone-%d", i))}
	if i%2 == 0 {
		volume.Spec.CSI.VolumeHandle = fmt.Sprintf("%d-%s", i, strings.Repeat("x", 300))
		return volume
	}
	volume.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/host-path"}
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: fmt.Sprintf("/nowhere/%d", i)}}
	return volume
}
