package deletion

import (
	"context"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// directories is a backend without a CSI driver that may leave its volumes to another
// program.
type directories struct {
	ignores bool
	deleted []string
	// keys is how often a volume was looked up by its disk.
	keys int
}

func (*directories) Name() string { return fuzzobj.Driver }

func (*directories) HandleOf(volume *v1.PersistentVolume) string {
	if volume.Spec.HostPath == nil {
		return ""
	}
	return volume.Spec.HostPath.Path
}

func (d *directories) Keys(volume *v1.PersistentVolume) []string {
	d.keys++
	if handle := d.HandleOf(volume); handle != "" {
		return []string{handle}
	}
	return nil
}

func (d *directories) Same(a, b *v1.PersistentVolume) bool {
	return d.HandleOf(a) != "" && d.HandleOf(a) == d.HandleOf(b)
}

func (d *directories) PrepareDelete(_ context.Context, volume *v1.PersistentVolume) (backend.DeleteCall, error) {
	if d.ignores {
		return nil, &backend.Ignored{Reason: "the directory is on another node"}
	}
	return func(context.Context) error {
		d.deleted = append(d.deleted, volume.Name)
		return nil
	}, nil
}

func (d *directories) PrepareDiscard(ctx context.Context, volume *v1.PersistentVolume,
	_ string) (backend.DeleteCall, error) {
	return d.PrepareDelete(ctx, volume)
}

func TestVolumeOfAnotherBackendIsReclaimed(t *testing.T) {
	for name, tc := range map[string]struct {
		ignores, shared, deleted bool
	}{
		"deleted":                {deleted: true},
		"left to another":        {ignores: true},
		"shares a directory":     {shared: true},
		"shared and not ignored": {ignores: true, shared: true},
	} {
		t.Run(name, func(t *testing.T) {
			volume := released("pv")
			volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/d"}}
			client, events, d := fake.NewClientset(volume), record.NewFakeRecorder(10), &directories{ignores: tc.ignores}
			c, err := New(Config{
				Client: client, Volumes: informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumes().Informer(),
				Deleter: d, Honor: true,
				Reporter: controller.NewReporter(events), Metrics: metrics.New("ignored"), Locks: &controller.KeyLocks{},
				Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
			})
			if err == nil {
				err = c.Volumes.GetStore().Add(volume)
			}
			if err == nil && tc.shared {
				other := volume.DeepCopy()
				other.Name, other.UID = "other", "other"
				err = c.Volumes.GetStore().Add(other)
			}
			if err == nil {
				err = c.Reconcile(t.Context(), volume.Name)
			}
			if err != nil {
				t.Fatal(err)
			}
			if (len(d.deleted) > 0) != tc.deleted || tc.ignores && !tc.shared && len(events.Events) > 0 {
				t.Errorf("deleted %v, %d events", d.deleted, len(events.Events))
			}
			now, err := client.CoreV1().PersistentVolumes().Get(t.Context(), volume.Name, metav1.GetOptions{})
			if kept := err == nil && finalizer.Has(now.Finalizers, finalizer.External); kept == tc.deleted {
				t.Errorf("the volume is kept: %v; %v", kept, err)
			}
		})
	}
}
