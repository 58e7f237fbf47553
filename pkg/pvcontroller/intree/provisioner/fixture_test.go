package provisioner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	operations "github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// recorder keeps the events that were sent.
type recorder struct{ events []string }

func (r *recorder) Event(_ runtime.Object, kind, reason, message string) {
	r.events = append(r.events, fmt.Sprintf("%s %s: %s", kind, reason, message))
}

func (r *recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (r *recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string,
	args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

// fixture is the pv-controller with one in-tree plugin, a storage class of the plugin and a
// claim of the class. The caches know the objects of the API server.
type fixture struct {
	*pvcontroller.Controllers
	t          *testing.T
	client     *fake.Clientset
	caches     *pvcache.Caches
	operations *operations.Operations
	events     *recorder
}

func newFixture(t *testing.T, plugin intree.Plugin, class *storagev1.StorageClass,
	claim *v1.PersistentVolumeClaim) *fixture {
	t.Helper()
	s := &fixture{t: t, client: fake.NewClientset(class, claim), operations: operations.NewOperations(),
		events: &recorder{}}
	s.client.PrependReactor("create", "persistentvolumes",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			volume := action.(clienttesting.CreateAction).GetObject().(*v1.PersistentVolume)
			volume.UID, volume.ResourceVersion, volume.Status.Phase = types.UID(volume.Name), "1", v1.VolumePending
			return false, nil, nil
		})
	var err error
	s.caches, err = pvcache.New(informers.NewSharedInformerFactory(s.client, 0))
	s.must(err)
	s.Controllers, err = pvcontroller.New(pvcontroller.Config{
		Clients: pvcontroller.OneClient(s.client), Caches: s.caches, Reporter: controller.NewReporter(s.events),
		Plugins: intree.NewSet(migration.New(), plugin), Operations: s.operations, Dynamic: true, Honor: true,
	})
	s.must(err)
	s.must(errors.Join(s.caches.Classes.GetStore().Add(class), s.caches.Claims.GetStore().Add(claim)))
	return s
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// reconcile reconciles the claim once and updates the caches.
func (s *fixture) reconcile() *v1.PersistentVolumeClaim {
	s.t.Helper()
	ctx := context.Background()
	s.must(s.Claims.Reconcile(ctx, "ns/claim"))
	claim, err := s.client.CoreV1().PersistentVolumeClaims("ns").Get(ctx, "claim", metav1.GetOptions{})
	s.must(err)
	s.must(s.caches.Claims.GetStore().Update(claim))
	volumes, err := s.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	s.must(err)
	for i := range volumes.Items {
		s.must(s.caches.Volumes.GetStore().Update(&volumes.Items[i]))
	}
	return claim
}

// provision runs the in-tree provisioner once.
func (s *fixture) provision() error {
	return s.Provisioner.Reconcile(s.t.Context(), "ns/claim")
}

// newClaim returns a Pending claim of the class "class".
func newClaim(change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	class := "class"
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "claim", ResourceVersion: "1",
			Annotations: map[string]string{"example.com/any": "thing"}},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending},
	}
	for _, f := range change {
		f(claim)
	}
	return claim
}

// hostPathClass returns the class "class" of the host-path plugin.
func hostPathClass(change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	immediate := storagev1.VolumeBindingImmediate
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: intree.HostPathName,
		VolumeBindingMode: &immediate}
	for _, f := range change {
		f(class)
	}
	return class
}
