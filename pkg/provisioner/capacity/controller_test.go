package capacity_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	domain "github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/capacity"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// driver reports a capacity of bytes for every segment, or the error.
type driver struct {
	mu    sync.Mutex
	bytes int64
	err   error
	calls int
	// during runs in the middle of a call.
	during func()
}

func (d *driver) GetCapacity(context.Context, *spec.GetCapacityRequest) (*spec.GetCapacityResponse, error) {
	if d.during != nil {
		d.during()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	return &spec.GetCapacityResponse{AvailableCapacity: d.bytes}, d.err
}

func (d *driver) set(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes = bytes
}

func (d *driver) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// fixture is a controller with a fake API server.
type fixture struct {
	*capacity.Controller
	t       *testing.T
	client  *fake.Clientset
	driver  *driver
	classes cache.SharedIndexInformer
	volumes cache.SharedIndexInformer
}

var manager = domain.Manager{Driver: "driver", ID: "external-provisioner", Namespace: "ns"}

// newFixture returns a controller for the segments; the API server has the objects.
func newFixture(t *testing.T, interval time.Duration, segments capacity.Segments, objects ...runtime.Object) *fixture {
	t.Helper()
	client := fake.NewClientset(objects...)
	client.PrependReactor("create", "csistoragecapacities",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			created := action.(clienttesting.CreateAction).GetObject().(*storagev1.CSIStorageCapacity)
			created.UID, created.ResourceVersion = types.UID("uid-of-"+created.Name), "1" // as a real server does
			return false, nil, nil
		})
	client.PrependWatchReactor("csistoragecapacities", copiedEvents(client))
	factory := informers.NewSharedInformerFactory(client, 0)
	w := &fixture{
		t: t, client: client, driver: &driver{bytes: 10},
		classes: factory.Storage().V1().StorageClasses().Informer(),
		volumes: factory.Core().V1().PersistentVolumes().Informer(),
	}
	var err error
	w.Controller, err = capacity.New(capacity.Config{
		Client: client, Driver: w.driver, Manager: manager, Classes: w.classes, Volumes: w.volumes, Segments: segments,
		Interval: interval, Backoff: controller.Backoff{Initial: time.Millisecond, Max: 10 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	return w
}

// copiedEvents copies the objects of watch events, as decoding does: the informer strips
// managedFields, and the fake client would hand out the object that it stores.
func copiedEvents(client *fake.Clientset) clienttesting.WatchReactionFunc {
	return func(action clienttesting.Action) (bool, watch.Interface, error) {
		options := action.(clienttesting.WatchActionImpl).ListOptions
		events, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace(), options)
		if err != nil {
			return true, nil, err
		}
		return true, watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
			event.Object = event.Object.DeepCopyObject()
			return event, true
		}), nil
	}
}

// start runs the controller until the test ends.
func (w *fixture) start() {
	ctx, stop := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Watch(ctx); err != nil {
			w.t.Error(err)
			return
		}
		w.Run(ctx, 2)
	}()
	w.t.Cleanup(func() { stop(); <-done })
}

func class(name string) *storagev1.StorageClass {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Provisioner: "driver",
		VolumeBindingMode: &wait}
}

func object(name, class, zone string, bytes int64, labels map[string]string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-of-" + name),
			ResourceVersion: "1", Labels: labels},
		StorageClassName: class, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": zone}},
		Capacity: resource.NewQuantity(bytes, resource.BinarySI),
	}
}

// text returns all objects as CLASS/ZONE=BYTES.
func (w *fixture) text() string {
	list, err := w.client.StorageV1().CSIStorageCapacities("ns").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var parts []string
	for _, o := range list.Items {
		zone := strings.Join(slices.Sorted(maps.Values(o.NodeTopology.MatchLabels)), ",")
		parts = append(parts, fmt.Sprintf("%s/%s=%d", o.StorageClassName, zone, o.Capacity.Value()))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func (w *fixture) await(want string) {
	w.t.Helper()
	w.eventually(func() bool { return w.text() == want },
		func() string { return fmt.Sprintf("objects %q, want %q", w.text(), want) })
}

func (w *fixture) eventually(condition func() bool, failure func() string) {
	w.t.Helper()
	deadline := time.After(10 * time.Second)
	for !condition() {
		select {
		case <-deadline:
			w.t.Fatal(failure())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// writes returns the number of write requests.
func (w *fixture) writes() int {
	writes := 0
	for _, action := range w.client.Actions() {
		if action.GetResource().Resource == "csistoragecapacities" &&
			!slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			writes++
		}
	}
	return writes
}

// quiet reports whether six polls in a row wrote nothing.
func (w *fixture) quiet() bool {
	written, asked := w.writes(), w.driver.count()
	w.eventually(func() bool { return w.driver.count() > asked+5 }, func() string { return "no further call" })
	return w.writes() == written
}

const zoneA = capacity.Local("zone=a")

func TestObjectsOfUpstreamAreAdoptedOrRemoved(t *testing.T) {
	ours, foreign := manager.Labels(), map[string]string{domain.DriverLabel: "driver",
		domain.ManagerLabel: "external-provisioner-node"}
	w := newFixture(t, time.Hour, zoneA, class("fast"),
		object("csisc-random", "fast", "a", 3, ours), object("csisc-zone", "fast", "gone", 3, ours),
		object("csisc-class", "gone", "a", 3, ours), object("csisc-node", "fast", "gone", 3, foreign))
	w.start()
	w.await("fast/a=10 fast/gone=3")
	if _, err := w.client.StorageV1().CSIStorageCapacities("ns").
		Get(t.Context(), "csisc-random", metav1.GetOptions{}); err != nil {
		t.Errorf("the existing object was replaced: %v", err)
	}
}

func TestOldestObjectOfAnItemStays(t *testing.T) {
	younger := object("a-younger", "fast", "a", 10, manager.Labels())
	younger.UID, younger.CreationTimestamp = "younger", metav1.Time{Time: time.Unix(100, 0)}
	older := object("b-older", "fast", "a", 10, manager.Labels())
	older.CreationTimestamp = metav1.Time{Time: time.Unix(50, 0)}
	w := newFixture(t, time.Hour, zoneA, class("fast"), younger, older)
	w.start()
	w.await("fast/a=10")
	if _, err := w.client.StorageV1().CSIStorageCapacities("ns").
		Get(t.Context(), "b-older", metav1.GetOptions{}); err != nil {
		t.Errorf("the older object was deleted: %v", err)
	}
}

func TestVolumeChangesAskTheDriverAgain(t *testing.T) {
	w := newFixture(t, time.Hour, zoneA, class("fast"))
	w.start()
	w.await("fast/a=10")
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "volume", UID: "volume", ResourceVersion: "1"},
		Spec: v1.PersistentVolumeSpec{
			StorageClassName: "fast", Capacity: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1")},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "driver", VolumeHandle: "handle"}},
		},
	}
	volumes := w.client.CoreV1().PersistentVolumes()
	steps := []struct {
		name   string
		change func() error
	}{
		{"created", func() error { _, err := volumes.Create(t.Context(), volume, metav1.CreateOptions{}); return err }},
		{"resized", func() error {
			grown := volume.DeepCopy()
			grown.ResourceVersion, grown.Spec.Capacity = "2", v1.ResourceList{v1.ResourceStorage: resource.MustParse("2")}
			_, err := volumes.Update(t.Context(), grown, metav1.UpdateOptions{})
			return err
		}},
		{"deleted", func() error { return volumes.Delete(t.Context(), "volume", metav1.DeleteOptions{}) }},
		{"CreateVolume failed", func() error { w.RefreshRequested("fast", nil); return nil }},
	}
	for i, step := range steps {
		left := int64(9 - i)
		w.driver.set(left)
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		w.await(fmt.Sprintf("fast/a=%d", left))
	}
	asked := w.driver.count()
	other := volume.DeepCopy()
	other.Name, other.Spec.CSI.Driver = "other", "somebody"
	if _, err := volumes.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() bool { _, found, _ := w.volumes.GetStore().GetByKey("other"); return found }, func() string { return "no event" })
	if w.driver.count() != asked {
		t.Error("a volume of another driver caused a call")
	}
}

func TestPollWritesChangesOnly(t *testing.T) {
	w := newFixture(t, 10*time.Millisecond, zoneA, class("fast"))
	w.start()
	w.await("fast/a=10")
	// A poll before the watch shows the object cannot know it, and tries to create it again.
	w.eventually(w.quiet, func() string { return "every poll writes" })
	w.driver.set(7)
	w.await("fast/a=7")
}

func TestObjectStaysWhileTheDriverFails(t *testing.T) {
	w := newFixture(t, time.Hour, zoneA, class("fast"), object("there", "fast", "a", 5, manager.Labels()))
	w.driver.err = errors.New("not now")
	w.start()
	w.eventually(func() bool { return w.driver.count() > 3 }, func() string { return "no further call" })
	if got := w.text(); got != "fast/a=5" {
		t.Errorf("objects %q while the driver fails", got)
	}
	w.driver.mu.Lock()
	w.driver.err = nil
	w.driver.mu.Unlock()
	w.await("fast/a=10")
}

// A volume created during a GetCapacity call makes the answer of the call outdated.
func TestReasonDuringACallRepeatsTheCall(t *testing.T) {
	w := newFixture(t, time.Hour, zoneA, class("fast"))
	var once sync.Once
	w.driver.during = func() { once.Do(func() { w.RefreshRequested("fast", nil); w.driver.set(10) }) }
	w.start()
	w.eventually(func() bool { return w.driver.count() == 2 }, func() string { return fmt.Sprintf("%d calls, want 2", w.driver.count()) })
}

// During a storm a volume is created in each call.
func TestOutdatedAnswerIsPublished(t *testing.T) {
	w := newFixture(t, time.Hour, zoneA, class("fast"))
	w.driver.during = func() { w.RefreshRequested("fast", nil) }
	if err := w.Reconcile(t.Context(), "fast/zone=a"); err != nil {
		t.Fatal(err)
	}
	if w.driver.count() != 1 || w.text() == "" {
		t.Errorf("%d calls, objects %q; want the first answer", w.driver.count(), w.text())
	}
}

func TestNameConflictWithForeignObject(t *testing.T) {
	item := domain.Item{Class: "fast", Segment: "zone=a"}
	foreign := object(manager.Object(item, domain.Answer{}).Name, "other", "z", 1, map[string]string{"somebody": "else"})
	w := newFixture(t, time.Hour, zoneA, class("fast"), foreign)
	w.client.PrependReactor("create", "csistoragecapacities", func(action clienttesting.Action) (bool, runtime.Object, error) {
		created := action.(clienttesting.CreateAction).GetObject().(*storagev1.CSIStorageCapacity)
		if created.Name == "" {
			created.Name = created.GenerateName + "x" // the fake server generates no names
		}
		return false, nil, nil
	})
	w.start()
	w.await("fast/a=10 other/z=1")
}

func TestLostAnswerOfCreateMakesNoSecondObject(t *testing.T) {
	w := newFixture(t, time.Hour, zoneA, class("fast"))
	var once sync.Once
	w.client.PrependReactor("create", "csistoragecapacities", func(action clienttesting.Action) (handled bool, result runtime.Object, err error) {
		once.Do(func() {
			create := action.(clienttesting.CreateAction)
			if err := w.client.Tracker().Create(create.GetResource(), create.GetObject(), "ns"); err != nil {
				t.Error(err)
			}
			handled, err = true, apierrors.NewTimeoutError("the answer was lost", 0)
		})
		return handled, nil, err
	})
	w.start()
	w.await("fast/a=10")
	if got := w.driver.count(); got != 1 {
		t.Errorf("%d calls, want 1: the answer was known", got)
	}
}

func TestDeletionNamesTheUID(t *testing.T) {
	obsolete := object("there", "gone", "a", 5, manager.Labels())
	w := newFixture(t, time.Hour, zoneA, class("fast"), obsolete)
	var preconditions []*metav1.Preconditions
	var mu sync.Mutex
	w.client.PrependReactor("delete", "csistoragecapacities", func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		preconditions = append(preconditions, action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions)
		return false, nil, nil
	})
	w.start()
	w.await("fast/a=10")
	mu.Lock()
	defer mu.Unlock()
	if len(preconditions) != 1 || preconditions[0] == nil || *preconditions[0].UID != obsolete.UID {
		t.Errorf("deleted with preconditions %+v, want the UID", preconditions)
	}
}

// zones are two segments that do not change.
type zones struct{ capacity.Local }

func (zones) All() []topology.Segment           { return []topology.Segment{"zone=a", "zone=b"} }
func (zones) Has(segment topology.Segment) bool { return segment == "zone=a" || segment == "zone=b" }

func TestFailedRequestRefreshesItsSegmentsOnly(t *testing.T) {
	w := newFixture(t, time.Hour, zones{}, class("fast"))
	w.start()
	w.await("fast/a=10 fast/b=10")
	w.driver.set(4)
	w.RefreshRequested("fast", &spec.TopologyRequirement{Requisite: []*spec.Topology{{Segments: map[string]string{"zone": "b"}}}})
	w.await("fast/a=10 fast/b=4")
	if calls := w.driver.count(); calls != 3 {
		t.Errorf("%d calls of the driver, want one for each segment and one for zone b", calls)
	}
	w.RefreshRequested("fast", nil)
	w.await("fast/a=4 fast/b=4")
}
