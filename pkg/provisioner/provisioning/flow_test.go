package provisioning

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/deletion"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// flow is a claim controller with a real deletion controller, a driver behind a socket, and a
// fake API with injected failures.
type flow struct {
	*testing.T
	client *fake.Clientset
	// reactors come before those of the client. Unlike those, they can be added while the
	// journal sends requests.
	reactors reactors
	mock     *csimock.Server
	driver   *csi.Driver
	// calls is the driver of the claim controller.
	calls  wrapped
	events *record.FakeRecorder
	// translator translates volumes of the migrated in-tree plugin.
	translator interface {
		csibackend.Translator
		disk.Translator
	}
	store *journalstore.Store
	// terms is the number of transitions of the leader lease. creations are the claims whose creation the process saw.
	terms     int32
	creations *controller.Creations
	// backend is the backend of the next process, nil for the driver.
	backend backend.Backend
	// deletions is the deletion controller.
	deletions *deletion.Controller
	*Controller
}

// reactors answer requests, the last added first.
type reactors struct {
	mu   sync.Mutex
	list []clienttesting.SimpleReactor
}

func (r *reactors) answer(action clienttesting.Action) (bool, runtime.Object, error) {
	r.mu.Lock()
	list := slices.Clone(r.list)
	r.mu.Unlock()
	for _, reactor := range slices.Backward(list) {
		if !reactor.Handles(action) {
			continue
		}
		if handled, object, err := reactor.React(action); handled {
			return true, object, err
		}
	}
	return false, nil, nil
}

// react answers requests by the function from now on.
func (f *flow) react(verb, resource string, answer clienttesting.ReactionFunc) {
	f.reactors.mu.Lock()
	defer f.reactors.mu.Unlock()
	f.reactors.list = append(f.reactors.list, clienttesting.SimpleReactor{Verb: verb, Resource: resource,
		Reaction: answer})
}

const flowClaim = "ns/claim/uid"

// versioned makes the fake API set resourceVersions of Leases and check them in updates.
func versioned(client *fake.Clientset) *fake.Clientset {
	version := 0
	stamp := func(object runtime.Object) *coordinationv1.Lease {
		lease, _ := object.(*coordinationv1.Lease)
		version++
		return lease
	}
	client.PrependReactor("create", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		stamp(action.(clienttesting.CreateAction).GetObject()).ResourceVersion = strconv.Itoa(version)
		return false, nil, nil
	})
	client.PrependReactor("update", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		lease := stamp(action.(clienttesting.UpdateAction).GetObject())
		now, err := client.Tracker().Get(action.GetResource(), lease.Namespace, lease.Name)
		if err == nil && now.(*coordinationv1.Lease).ResourceVersion != lease.ResourceVersion {
			return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, errors.New("scripted"))
		}
		lease.ResourceVersion = strconv.Itoa(version)
		return false, nil, nil
	})
	return client
}

// newTestStore returns a journal that runs until the test ends.
func newTestStore(t *testing.T, client *fake.Clientset, node string) *journalstore.Store {
	t.Helper()
	s := journalstore.New(journalstore.Config{
		Client: client, Journal: journal.Journal{Namespace: "kube-system", Driver: csimock.DefaultName, Node: node},
		Holder:  "pod_exeunt",
		Custody: journal.Custody{LeaderLease: "lease", Transitions: 1}, RemovalDelay: time.Millisecond,
		ForbiddenFor: time.Millisecond, Metrics: journalstore.NewMetrics(),
	})
	writing, stop := context.WithCancel(context.Background())
	var writer sync.WaitGroup
	writer.Go(func() { s.Run(writing) })
	t.Cleanup(func() {
		stop()
		writer.Wait()
	})
	return s
}

func newFlow(t *testing.T) *flow {
	t.Helper()
	class, immediate, policy := "class", storagev1.VolumeBindingImmediate, v1.PersistentVolumeReclaimDelete
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "claim", UID: "uid", ResourceVersion: "1", Finalizers: []string{"example.com/other"},
			Annotations: map[string]string{storage.AnnStorageProvisioner: csimock.DefaultName},
		},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class,
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}}},
	}
	f := &flow{T: t, translator: plugin{}, client: versioned(fake.NewClientset(claim, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: csimock.DefaultName, VolumeBindingMode: &immediate,
		ReclaimPolicy: &policy,
	}))}
	f.client.PrependReactor("*", "*", f.reactors.answer)
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
	f.driver, err = csi.Connect(t.Context(), csi.Config{Address: socket, Timeout: 10 * time.Second,
		Metrics: csi.NewMetrics()})
	f.must(err)
	f.calls.Driver = f.driver
	f.creations = sawCreated(claim)
	f.start()
	return f
}

// sawCreated returns creations that have the claim.
func sawCreated(claim *v1.PersistentVolumeClaim) *controller.Creations {
	creations := NewCreations()
	creations.Observe(watch.Event{Type: watch.Added, Object: claim})
	return creations
}

// restart starts a new process with synced caches, which lists the claims.
func (f *flow) restart() {
	f.Helper()
	f.creations = nil
	f.start()
}

func (f *flow) start() {
	f.Helper()
	factory, locks := informers.NewSharedInformerFactory(f.client, 0), &controller.KeyLocks{}
	core, counts := factory.Core().V1(), metrics.New("flow")
	f.events = record.NewFakeRecorder(1000)
	f.store = newTestStore(f.T, f.client, "")
	f.store.Custody.Transitions += f.terms
	reporter, backoff := controller.NewReporter(f.events), controller.Backoff{Initial: time.Millisecond, Max: time.Second}
	deletions, err := deletion.New(deletion.Config{
		Client: f.client, Volumes: core.PersistentVolumes().Informer(),
		Deleter:  &csibackend.Deleter{Client: f.client, Driver: f.driver, Translator: f.translator},
		Reporter: reporter, Metrics: counts, Backoff: backoff, Honor: true, Locks: locks,
		RemoveEntry: func(ctx context.Context, volume *v1.PersistentVolume) (bool, error) {
			return f.RemoveEntry(ctx, volume)
		},
	})
	f.must(err)
	var creating backend.Backend = newBackend(csibackend.InputsConfig{Client: f.client, Driver: &f.calls,
		Translator: f.translator})
	if f.backend != nil {
		creating = f.backend
	}
	caches := cachesOf(factory)
	caches.Creations = f.creations
	f.Controller, err = New(Config{
		Client: f.client, Caches: caches, Backend: creating, Honor: true,
		Deletion: deletions, Scope: serves(csimock.DefaultName, oldPlugin),
		Nodes: liveNodes(func(_ context.Context, name string) (*v1.Node, error) {
			return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
		}),
		Locks: locks, Reporter: reporter, Metrics: counts, Backoff: backoff,
		Journal: f.store, Journaled: true,
	})
	f.must(err)
	f.Timeouts.OpenWrite = 0 // the writes of these tests end before the process
	factory.StartWithContext(f.Context())
	factory.WaitForCacheSync(f.Context().Done())
	f.deletions = deletions
	f.must(deletions.Watch(f.Context()))
	f.must(f.Watch(f.Context()))
	f.must(f.Start(f.Context()))
}

func (f *flow) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// failNext makes the next request with the verb and resource fail, before or after it is
// executed.
func (f *flow) failNext(verb, resource string, after bool) {
	var spent atomic.Bool
	f.react(verb, resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if spent.Swap(true) {
			return false, nil, nil
		}
		if after {
			_, _, err := clienttesting.ObjectReaction(f.client.Tracker())(action)
			f.must(err)
		}
		return true, nil, apierrors.NewInternalError(errors.New("scripted"))
	})
}

// syncClaim copies the claim from the API into the cache and returns it.
func (f *flow) syncClaim() *v1.PersistentVolumeClaim {
	f.Helper()
	claim, err := f.client.CoreV1().PersistentVolumeClaims("ns").Get(f.Context(), "claim", metav1.GetOptions{})
	f.must(err)
	f.must(f.Claims.GetStore().Update(claim))
	return claim
}

// setDeleting sets the claim's deletionTimestamp, as a deletion with a finalizer does.
func (f *flow) setDeleting() {
	f.Helper()
	claim := f.syncClaim().DeepCopy()
	claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	_, err := f.client.CoreV1().PersistentVolumeClaims("ns").Update(f.Context(), claim, metav1.UpdateOptions{})
	f.must(err)
}

// reconcile syncs the cache and reconciles the claim.
func (f *flow) reconcile(wantFailure bool) {
	f.Helper()
	f.syncClaim()
	if err := f.Reconcile(context.Background(), flowClaim); (err != nil) != wantFailure {
		f.Errorf("Reconcile = %v, want an error: %v", err, wantFailure)
	}
}

// anyNumber is for tests where an event of the volume may repeat the call.
const anyNumber = -1

// expect compares the number of volumes in the driver, of PersistentVolumes, of CreateVolume
// calls and of journal entries. No claim gets a finalizer.
func (f *flow) expect(stored, recorded, calls, entries int) {
	f.Helper()
	volumes, err := f.client.CoreV1().PersistentVolumes().List(f.Context(), metav1.ListOptions{})
	f.must(err)
	called := 0
	for _, call := range f.mock.Calls() {
		if call.Method == "CreateVolume" {
			called++
		}
	}
	is, open := len(f.mock.Volumes()), len(f.entries(journal.KindActive))
	if is != stored || len(volumes.Items) != recorded || calls != anyNumber && called != calls || open != entries {
		f.Errorf("%d volumes in the driver, %d recorded, CreateVolume called %d times, %d journal entries; want %d, %d, %d, %d",
			is, len(volumes.Items), called, open, stored, recorded, calls, entries)
	}
	claims, err := f.client.CoreV1().PersistentVolumeClaims("ns").List(f.Context(), metav1.ListOptions{})
	f.must(err)
	for _, claim := range claims.Items {
		if !slices.Equal(claim.Finalizers, []string{"example.com/other"}) {
			f.Errorf("the claim has the finalizers %v", claim.Finalizers)
		}
	}
}

// entries returns the entries in the Leases of the kind.
func (f *flow) entries(kind journal.Kind) []journal.Entry {
	f.Helper()
	f.store.Flush(f.Context())
	leases, err := f.client.CoordinationV1().Leases("kube-system").List(f.Context(), metav1.ListOptions{})
	f.must(err)
	var all []journal.Entry
	for i := range leases.Items {
		if is, _, ours := f.store.Journal.KindOf(&leases.Items[i]); ours && is == kind {
			found, _ := journal.Entries(&leases.Items[i])
			all = append(all, found...)
		}
	}
	return all
}

// deleteClaim deletes the claim from the API and the cache.
func (f *flow) deleteClaim() {
	f.Helper()
	claim := f.syncClaim()
	f.must(f.client.CoreV1().PersistentVolumeClaims("ns").Delete(f.Context(), "claim", metav1.DeleteOptions{}))
	f.must(f.Claims.GetStore().Delete(claim))
	f.claimGone(claim)
}

// reconcileDeleted reconciles the deleted claim.
func (f *flow) reconcileDeleted(wantFailure bool) {
	f.Helper()
	if err := f.Reconcile(context.Background(), flowClaim); (err != nil) != wantFailure {
		f.Errorf("Reconcile = %v, want an error: %v", err, wantFailure)
	}
}

// editClaim edits the claim in the API and the cache.
func (f *flow) editClaim(edit func(*v1.PersistentVolumeClaim)) {
	f.Helper()
	claim := f.syncClaim().DeepCopy()
	edit(claim)
	_, err := f.client.CoreV1().PersistentVolumeClaims("ns").Update(f.Context(), claim, metav1.UpdateOptions{})
	f.must(err)
	f.syncClaim()
}

// injectFault makes CreateVolume fail with the code, with or without a created volume.
func (f *flow) injectFault(code codes.Code, created bool, times int) {
	f.Helper()
	f.must(f.mock.Inject(csimock.Fault{Method: "CreateVolume", Code: code, After: created, Times: times}))
}

// takeEvents returns the events since the last call.
func (f *flow) takeEvents() string {
	var all []string
	for {
		select {
		case event := <-f.events.Events:
			all = append(all, event)
		default:
			return strings.Join(all, "\n")
		}
	}
}
