package reclaimer

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/volume"
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
	// compared counts the pairs of volumes that were compared.
	compared atomic.Int32
}

const diskName = "kubernetes.io/disk"

func (d *disk) Name() string { return diskName }

func (d *disk) Delete(ctx context.Context, _ *v1.PersistentVolume) error {
	d.calls.Add(1)
	return d.delete(ctx)
}

func (d *disk) Apart(volume, other *v1.PersistentVolume) bool {
	d.compared.Add(1)
	return d.HostPath.Apart(volume, other)
}

// fixture is a controller whose caches contain the objects of its API server,
// and the controller of phases and pv-protection beside it.
type fixture struct {
	*Controller
	phases *volume.Controller
	t      *testing.T
	plugin *disk
	events *recorder
}

func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	client := fake.NewClientset(objects...)
	countPods(client)
	caches, err := pvcache.New(informers.NewSharedInformerFactory(client, 0))
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{t: t, events: &recorder{}, plugin: &disk{delete: func(context.Context) error { return nil }}}
	versions, reporter := controller.NewVersions(), controller.NewReporter(s.events)
	s.Controller, err = New(Config{
		Client: client, Caches: caches, Versions: versions, Reporter: reporter,
		Plugins: intree.NewSet(migration.New(), s.plugin), Operations: metrics.NewOperations(), Locks: &controller.KeyLocks{},
		Honor: true,
	})
	s.must(err)
	s.phases = volume.New(volume.Config{
		Client: client, Caches: caches, Versions: versions, Reporter: reporter, InTree: s.Controller,
		WakeClaim: func(string) {}, Honor: true,
	})
	s.updateCaches()
	return s
}

// countPods has the API server give each new pod a UID of its own.
func countPods(client *fake.Clientset) {
	pods := 0
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if pod, ok := action.(clienttesting.CreateAction).GetObject().(*v1.Pod); ok {
			pods++
			pod.UID = types.UID(fmt.Sprint("pod-", pods))
		}
		return false, nil, nil
	})
}

// shutDown ends the goroutines of the queues.
func (s *fixture) shutDown() {
	ended, end := context.WithCancel(context.Background())
	end()
	s.Run(ended)
	s.phases.Run(ended, 1)
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

// reclaim reconciles the volume in every loop. It returns nil if the volume is gone.
func (s *fixture) reclaim() *v1.PersistentVolume {
	s.t.Helper()
	for _, reconcile := range []func(context.Context, string) error{s.phases.Reconcile, s.phases.Protect, s.Reconcile,
		s.phases.Reconcile, s.phases.Protect} {
		s.must(reconcile(context.Background(), "v"))
		s.updateCaches()
	}
	return s.Caches.Volume("v")
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

// static is a volume that a person created.
func static(v *v1.PersistentVolume) { delete(v.Annotations, storage.AnnDynamicallyProvisioned) }
