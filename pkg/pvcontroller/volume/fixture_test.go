package volume

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree/reclaimer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// recorder keeps the events that were sent: type, reason and message.
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

// disk is a plugin whose Delete calls the function of the test.
type disk struct {
	intree.HostPath
	delete func(context.Context) error
	calls  atomic.Int32
}

const diskName = "kubernetes.io/disk"

func (d *disk) Name() string { return diskName }

func (d *disk) Delete(ctx context.Context, _ *v1.PersistentVolume) error {
	d.calls.Add(1)
	return d.delete(ctx)
}

// fixture is a controller whose caches contain the objects of its API server.
type fixture struct {
	*Controller
	reclaimer *reclaimer.Controller
	t         *testing.T
	plugin    *disk
	events    *recorder
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	client := fake.NewClientset(objects...)
	caches, err := pvcache.New(informers.NewSharedInformerFactory(client, 0))
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{t: t, events: &recorder{}, plugin: &disk{delete: func(context.Context) error { return nil }}}
	s.Controller, s.reclaimer = newControllers(t, client, caches, s.events, s.plugin)
	s.updateCaches()
	return s
}

// newControllers returns the controller and the reclaimer that it hands volumes to.
func newControllers(t testing.TB, client kubernetes.Interface, caches *pvcache.Caches, events *recorder,
	plugins ...intree.Plugin) (*Controller, *reclaimer.Controller) {
	t.Helper()
	versions, reporter := controller.NewVersions(), controller.NewReporter(events)
	inTree, err := reclaimer.New(reclaimer.Config{
		Client: client, Caches: caches, Versions: versions, Reporter: reporter,
		Plugins: intree.NewSet(migration.New(), plugins...), Operations: metrics.NewOperations(),
		Locks: &controller.KeyLocks{}, Honor: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{
		Client: client, Caches: caches, Versions: versions, Reporter: reporter, InTree: inTree, WakeClaim: func(string) {},
		Honor: true,
	})
	return c, inTree
}

// updateCaches fills the caches from the API server.
func (s *fixture) updateCaches() {
	s.t.Helper()
	ctx := context.Background()
	volumes, volumesErr := s.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	pods, podsErr := s.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	s.must(volumesErr)
	s.must(podsErr)
	var known, running []any
	for i := range volumes.Items {
		known = append(known, &volumes.Items[i])
	}
	for i := range pods.Items {
		running = append(running, &pods.Items[i])
	}
	s.must(s.Caches.Volumes.GetStore().Replace(known, ""))
	s.must(s.Caches.Pods.GetStore().Replace(running, ""))
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// releasedVolume returns a Released volume of the plugin. The claim "claim" with UID "c" is gone.
func releasedVolume(policy v1.PersistentVolumeReclaimPolicy,
	change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "u", ResourceVersion: "1",
			Annotations: map[string]string{storage.AnnDynamicallyProvisioned: diskName}},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy,
			ClaimRef:                      &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "c"},
			PersistentVolumeSource:        v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/data/v"}},
		},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeReleased},
	}
	for _, f := range change {
		f(volume)
	}
	return volume
}

// by is a volume that the plugin or the driver provisioned.
func by(plugin string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) { v.Annotations[storage.AnnDynamicallyProvisioned] = plugin }
}
