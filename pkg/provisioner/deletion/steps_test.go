package deletion

import (
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

func TestPassEndsAlthoughWebhookRemovesFinalizer(t *testing.T) {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "u", ResourceVersion: "1"},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: fuzzobj.Driver,
				VolumeHandle: "v"}},
			ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "c"},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
	}
	client, patches := fake.NewClientset(volume), 0
	client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		patches++
		return patches < 1000, volume.DeepCopy(), nil
	})
	cached := informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumes().Informer()
	c, err := New(Config{
		Client: client, Volumes: cached, Deleter: &csibackend.Deleter{Client: client, Driver: &shredder{},
			Translator: &shredder{}}, Honor: true,
		Reporter: controller.NewReporter(&record.FakeRecorder{}), Metrics: metrics.New("steps"),
		Locks:   &controller.KeyLocks{},
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := cached.GetStore().Add(volume); err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), "v"); !errors.Is(err, controller.ErrTooManySteps) || patches > controller.MaxSteps {
		t.Errorf("%d patches in one pass, error %v", patches, err)
	}
}
