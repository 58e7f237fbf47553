package provisioning

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/deletion"
	"github.com/exeunt-io/exeunt/pkg/csi"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// flow is the claim side with the real volume side and a driver behind a socket,
// on an API that fails when a test says so.
type flow struct {
	*testing.T
	client *fake.Clientset
	mock   *csimock.Server
	driver *csi.Driver
	events *record.FakeRecorder
	// translator is that of the in-tree plugin that the driver replaces.
	translator interface {
		Translator
		deletion.Translator
	}
	*Controller
}

const flowClaim = "ns/claim/uid"

func newFlow(t *testing.T, finalizers ...string) *flow {
	t.Helper()
	class, immediate, policy := "class", storagev1.VolumeBindingImmediate, v1.PersistentVolumeReclaimDelete
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "claim", UID: "uid", ResourceVersion: "1", Finalizers: append([]string{"example.com/other"}, finalizers...),
			Annotations: map[string]string{binding.StorageProvisioner: csimock.DefaultName},
		},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}}},
	}
	f := &flow{T: t, translator: plugin{}, client: fake.NewClientset(claim, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: csimock.DefaultName, VolumeBindingMode: &immediate, ReclaimPolicy: &policy,
	})}
	directory, err := os.MkdirTemp("", "flow") // short enough for a socket
	f.must(err)
	socket := filepath.Join(directory, "csi.sock")
	f.mock, err = csimock.Start(t.Context(), csimock.Config{}, socket)
	f.must(err)
	t.Cleanup(func() {
		if err := errors.Join(f.driver.Close(), f.mock.Stop(), os.RemoveAll(directory)); err != nil {
			t.Error(err)
		}
	})
	f.driver, err = csi.Connect(t.Context(), csi.Config{Address: socket, Timeout: 200 * time.Millisecond, Metrics: csi.NewMetrics()})
	f.must(err)
	f.restart()
	return f
}

// restart is a new process with full caches.
func (f *flow) restart() {
	f.Helper()
	factory, turns := informers.NewSharedInformerFactory(f.client, 0), &controller.Turns{}
	core, counts := factory.Core().V1(), metrics.New("flow")
	f.events = record.NewFakeRecorder(1000)
	reporter, backoff := controller.NewReporter(f.events), controller.Backoff{First: time.Millisecond, Most: time.Second}
	deletions, err := deletion.New(deletion.Config{
		Client: f.client, Volumes: core.PersistentVolumes().Informer(), Driver: f.driver, Translator: f.translator,
		Reporter: reporter, Metrics: counts, Backoff: backoff, Honor: true, Turns: turns,
	})
	f.must(err)
	f.Controller, err = New(Config{
		Client: f.client, Claims: core.PersistentVolumeClaims().Informer(), Volumes: core.PersistentVolumes().Informer(), Classes: factory.Storage().V1().StorageClasses().Informer(),
		Provisioner: &Provisioner{Driver: f.driver, Inputs: NewInputs(InputsConfig{Client: f.client, Driver: f.driver, Translator: f.translator}), Honor: true},
		Deletion:    deletions, Serves: func(name string) bool { return name == csimock.DefaultName || name == oldPlugin },
		Node: func(_ context.Context, name string) (*v1.Node, error) {
			return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
		},
		VolumeName: func(claim *v1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) },
		Turns:      turns, Reporter: reporter, Metrics: counts, Backoff: backoff, Holds: true,
	})
	f.must(err)
	factory.StartWithContext(f.Context())
	factory.WaitForCacheSync(f.Context().Done())
}

func (f *flow) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// fail has the next request of the kind fail, before or after it is done.
func (f *flow) fail(verb, resource string, after bool) {
	spent := false
	f.client.PrependReactor(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if spent {
			return false, nil, nil
		}
		spent = true
		if after {
			_, _, err := clienttesting.ObjectReaction(f.client.Tracker())(action)
			f.must(err)
		}
		return true, nil, apierrors.NewInternalError(errors.New("scripted"))
	})
}

// now is the claim as it is, brought into the cache.
func (f *flow) now() *v1.PersistentVolumeClaim {
	f.Helper()
	claim, err := f.client.CoreV1().PersistentVolumeClaims("ns").Get(f.Context(), "claim", metav1.GetOptions{})
	f.must(err)
	f.must(f.Claims.GetStore().Update(claim))
	return claim
}

// remove marks the claim as deleted, as the server does for one that is held.
func (f *flow) remove() {
	f.Helper()
	claim := f.now().DeepCopy()
	claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	_, err := f.client.CoreV1().PersistentVolumeClaims("ns").Update(f.Context(), claim, metav1.UpdateOptions{})
	f.must(err)
}

// step reconciles the claim as it is now and says whether that failed.
func (f *flow) step(wantFailure bool) {
	f.Helper()
	f.now()
	if err := f.Reconcile(context.Background(), flowClaim); (err != nil) != wantFailure {
		f.Errorf("Reconcile = %v, want an error: %v", err, wantFailure)
	}
}

// expect compares what there is: volumes in the driver, volumes of the API, calls
// of CreateVolume, and whether the claim is held.
func (f *flow) expect(stored, recorded, asked int, heldToo bool) {
	f.Helper()
	volumes, err := f.client.CoreV1().PersistentVolumes().List(f.Context(), metav1.ListOptions{})
	f.must(err)
	calls := 0
	for _, call := range f.mock.Calls() {
		if call.Method == "CreateVolume" {
			calls++
		}
	}
	is, hold := len(f.mock.Volumes()), held(f.now())
	if is != stored || len(volumes.Items) != recorded || calls != asked || hold != heldToo {
		f.Errorf("%d volumes in the driver, %d recorded, CreateVolume called %d times, held: %v; want %d, %d, %d, %v",
			is, len(volumes.Items), calls, hold, stored, recorded, asked, heldToo)
	}
}

func TestAVolumeThatCannotBeRecordedIsRecordedLaterWithoutAnotherCall(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	f.expect(1, 0, 1, true)
	f.step(false)
	f.expect(1, 1, 1, true)
}

func TestAVolumeThatWasRecordedThoughTheAnswerGotLostIsTheClaims(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", true)
	f.step(true)
	f.step(false)
	f.expect(1, 1, 1, true)
}

func TestAVolumeThatCannotBeRecordedGoesWithItsClaim(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	f.remove()
	f.step(false)
	f.expect(0, 0, 1, false)
}

func TestAVolumeRecordedWithoutAnAnswerIsNotDeletedBehindItsObject(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", true)
	f.step(true)
	f.must(f.Volumes.GetStore().Replace(nil, "")) // the watch is late
	f.remove()
	f.step(false)
	f.expect(1, 1, 1, false)
}

func TestADriverIsNotAskedForAClaimThatCouldNotBeHeldOrRead(t *testing.T) {
	for name, fail := range map[string]func(*flow){
		"not held": func(f *flow) { f.fail("patch", "persistentvolumeclaims", false) },
		"held, and not read": func(f *flow) {
			claim := f.now().DeepCopy()
			claim.Finalizers = finalizer.With(claim.Finalizers, finalizer.Provisioning)
			_, err := f.client.CoreV1().PersistentVolumeClaims("ns").Update(f.Context(), claim, metav1.UpdateOptions{})
			f.must(err)
			f.now()
			f.fail("get", "persistentvolumeclaims", false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			fail(f)
			if err := f.Reconcile(context.Background(), flowClaim); err == nil {
				t.Error("want an error")
			}
			f.expect(0, 0, 0, held(f.now()))
			f.step(false)
			f.expect(1, 1, 1, true)
		})
	}
}

func TestAVolumeMadeForNothingIsKeptInMindUntilItIsDeleted(t *testing.T) {
	f := newFlow(t, string(finalizer.Provisioning))
	f.remove()
	f.must(f.mock.Inject(csimock.Fault{Method: "DeleteVolume", Code: codes.Internal, Times: 2}))
	f.step(true)
	f.step(true)
	f.expect(1, 0, 1, true)
	f.step(false)
	f.expect(0, 0, 1, false)
	if !slices.ContainsFunc(f.told(), func(event string) bool { return strings.Contains(event, "ProvisioningCleanupFailed") }) {
		t.Error("no event says that the volume could not be deleted")
	}
}

func TestATimeoutKeepsTheRequestThoughClassAndClaimChange(t *testing.T) {
	f := newFlow(t)
	f.must(f.mock.Inject(csimock.Fault{Method: "CreateVolume", Code: codes.DeadlineExceeded, After: true, Times: 1}))
	f.step(true)
	f.must(f.Classes.GetStore().Replace(nil, "")) // the class is gone
	f.step(false)
	f.expect(1, 1, 2, true)
}

func (f *flow) told() []string {
	var all []string
	for {
		select {
		case event := <-f.events.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

func TestHandlesOfVolumesThatTheCacheDoesNotHaveAreReserved(t *testing.T) {
	m := newMemory()
	for range 2 {
		if !m.reserve("handle", "a") {
			t.Error("a free handle, or one's own, is refused")
		}
	}
	if m.reserve("handle", "b") {
		t.Error("the handle of another claim's volume is given")
	}
	m.release("handle")
	if !m.reserve("handle", "b") {
		t.Error("a handle that was released is refused")
	}
}

func TestWhatWasPerhapsMadeBeforeARestartIsFoundOutThoughItsNodeIsGone(t *testing.T) {
	f := newFlow(t)
	f.must(f.mock.Inject(csimock.Fault{Method: "CreateVolume", Code: codes.DeadlineExceeded, After: true, Times: 1}))
	f.step(true)
	f.expect(1, 0, 1, true)
	claim := f.now().DeepCopy()
	claim.Annotations[binding.SelectedNode] = "gone"
	_, err := f.client.CoreV1().PersistentVolumeClaims("ns").Update(f.Context(), claim, metav1.UpdateOptions{})
	f.must(err)
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provisioner: csimock.DefaultName, VolumeBindingMode: &wait}
	_, err = f.client.StorageV1().StorageClasses().Update(f.Context(), class, metav1.UpdateOptions{})
	f.must(err)
	f.restart()
	f.step(false)
	f.expect(0, 0, 2, true)
	if node, chosen := f.now().Annotations[binding.SelectedNode]; chosen {
		t.Errorf("the node %s is still chosen", node)
	}
}

func TestAnImpostorSeenAfterARestartIsNoReasonToForgetWhatWasPerhapsMade(t *testing.T) {
	f := newFlow(t)
	f.must(f.mock.Inject(csimock.Fault{Method: "CreateVolume", Code: codes.DeadlineExceeded, After: true, Times: 1}))
	f.step(true)
	impostor := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}
	_, err := f.client.CoreV1().PersistentVolumes().Create(f.Context(), impostor, metav1.CreateOptions{})
	f.must(err)
	f.restart()
	f.step(true)
	f.expect(0, 1, 2, true)
}
