package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	librarymetrics "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// fakeStorage is a storage backend with faults that a test sets.
type fakeStorage struct {
	name     string
	topology bool
	// next has the faults of the next calls.
	next []fault
	// handles has the volumes by name; created counts the creations.
	handles map[string]string
	created int
	// known has the handles of PersistentVolumes.
	known []string
	// requested has the names of CreateVolume calls, deleted the deleted handles.
	// undeletable is the error of every deletion.
	requested, deleted []string
	undeletable        error
	// handle replaces the returned handle.
	handle string
}

// fault fails a call, before or after its work.
type fault struct {
	code  codes.Code
	after bool
}

func (d *fakeStorage) Name() string { return d.name }

func (d *fakeStorage) HasTopology() bool { return d.topology }

func (d *fakeStorage) HasSingleWriter() bool { return false }

func (d *fakeStorage) Snapshots() bool { return false }

func (d *fakeStorage) Clones() bool { return false }

func (d *fakeStorage) Modifies() bool { return false }

func (d *fakeStorage) CreateVolume(_ context.Context,
	request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	d.requested = append(d.requested, request.GetName())
	var struck fault
	if len(d.next) > 0 {
		struck, d.next = d.next[0], d.next[1:]
	}
	if struck.code != codes.OK && !struck.after {
		return nil, status.Error(struck.code, "scripted fault")
	}
	if d.handles[request.GetName()] == "" {
		d.created++
		d.handles[request.GetName()] = fmt.Sprintf("%s-%d", request.GetName(), d.created)
	}
	handle := d.handles[request.GetName()]
	if d.handle != "" {
		handle = d.handle
	}
	if struck.code != codes.OK {
		return nil, status.Error(struck.code, "scripted fault")
	}
	return &spec.CreateVolumeResponse{Volume: &spec.Volume{VolumeId: handle,
		CapacityBytes: request.GetCapacityRange().GetRequiredBytes()}}, nil
}

func (d *fakeStorage) VolumesOnDisk(volume *v1.PersistentVolume) []string {
	if slices.Contains(d.known, harness.Handle(volume)) {
		return []string{"known"}
	}
	return nil
}

func (d *fakeStorage) VolumesDeletedWith(volume *v1.PersistentVolume) []string {
	return d.VolumesOnDisk(volume)
}

func (d *fakeStorage) DeletedWith(volume, other *v1.PersistentVolume) bool {
	return d.SameDisk(volume, other)
}

func (d *fakeStorage) SameDisk(a, b *v1.PersistentVolume) bool { return d.HandleOf(a) == d.HandleOf(b) }

func (d *fakeStorage) HandleOf(volume *v1.PersistentVolume) string {
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != d.name {
		return ""
	}
	return harness.Handle(volume)
}

func (d *fakeStorage) PrepareDiscard(_ context.Context, _ *v1.PersistentVolume, id string) (backend.DeleteCall, error) {
	return func(context.Context) error { return d.discard(id) }, nil
}

func (d *fakeStorage) discard(id string) error {
	if d.undeletable != nil {
		return d.undeletable
	}
	d.deleted = append(d.deleted, id)
	for name, stored := range d.handles {
		if stored == id {
			delete(d.handles, name)
		}
	}
	return nil
}

// fixture is the provisioning controller on caches that a test fills by hand, with the
// real API server and a storage backend in this process.
type fixture struct {
	*harness.Session
	storage    *fakeStorage
	factory    informers.SharedInformerFactory
	controller *provisioning.Controller
	store      *journalstore.Store
	term       int32
	events     *record.FakeRecorder
	creations  *controller.Creations
	class      string
	// leases is the client of the journal; deniedFor is for how long it waits for rights.
	leases    kubernetes.Interface
	deniedFor time.Duration
	timeouts  provisioning.Timeouts
	// bypassed has the reasons of volumes created without an entry.
	bypassed []string
}

// scope serves one provisioner on all nodes.
type scope struct{ provisioner string }

func (s scope) Serves(provisioner string) bool { return provisioner == s.provisioner }

func (scope) Node() string { return "" }

func (scope) Reaches(*v1.PersistentVolume) bool { return true }

func (scope) VolumeName(claim *v1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

// nodes are not cached.
type nodes struct{ client kubernetes.Interface }

func (n nodes) Read(ctx context.Context, name string) (*v1.Node, error) {
	return n.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

func (nodes) FromCache(string) *v1.Node { return nil }

// endedWrites are the timeouts of processes whose writes end with them.
func endedWrites() provisioning.Timeouts {
	timeouts := provisioning.DefaultTimeouts
	timeouts.OpenWrite = 0
	return timeouts
}

// newFixture creates the controller, a driver and a class.
func newFixture(s *harness.Session, mode storagev1.VolumeBindingMode, change ...func(*fixture)) *fixture {
	s.T.Helper()
	m := &fixture{
		Session: s, storage: &fakeStorage{name: s.Namespace + ".example.com", handles: map[string]string{}},
		class:  s.Namespace,
		leases: s.Client, deniedFor: time.Minute, timeouts: endedWrites(),
	}
	for _, f := range change {
		f(m)
	}
	class := harness.NewClass(m.class, m.storage.name, v1.PersistentVolumeReclaimDelete, mode)
	s.CreateStorageClass(class)
	m.restart()
	return m
}

// restart replaces the controller, as a new process does. Its caches are empty.
func (m *fixture) restart() {
	m.T.Helper()
	m.factory = informers.NewSharedInformerFactory(m.Client, 0)
	m.events, m.creations = record.NewFakeRecorder(1000), provisioning.NewCreations()
	core := m.factory.Core().V1()
	var err error
	m.controller, err = provisioning.New(provisioning.Config{
		Client: m.Client,
		Caches: provisioning.Caches{
			Claims: core.PersistentVolumeClaims().Informer(), Volumes: core.PersistentVolumes().Informer(),
			Classes:  m.factory.Storage().V1().StorageClasses().Informer(),
			Arrivals: provisioning.Arrivals{Creations: m.creations},
		},
		Backend: &csibackend.Backend{Driver: m.storage,
			Inputs: csibackend.NewInputs(csibackend.InputsConfig{Client: m.Client, Driver: m.storage})}, Honor: true,
		Deletion: m.storage, Scope: scope{m.storage.name}, Nodes: nodes{m.Client},
		Locks: &controller.KeyLocks{}, Reporter: controller.NewReporter(m.events), Metrics: librarymetrics.New("fixture"),
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
		Journal: m.journal(), Journaled: true, Timeouts: m.timeouts,
		Bypassed: func(reason string) { m.bypassed = append(m.bypassed, reason) },
	})
	m.Must(err, "make controller")
	m.Must(m.controller.Start(m.Ctx), "read the journal")
	class, err := m.Client.StorageV1().StorageClasses().Get(m.Ctx, m.class, metav1.GetOptions{})
	m.Must(err, "read class")
	fill(m.Session, m.factory.Storage().V1().StorageClasses().Informer(), class)
}

// journal returns the journal of the test's driver, which runs until the test ends. Each
// process has its own term.
func (m *fixture) journal() *journalstore.Store {
	m.T.Helper()
	m.term++
	m.store = journalstore.New(journalstore.Config{
		Client: m.leases, Journal: journal.Journal{Namespace: m.Namespace, Driver: m.storage.name}, Holder: "pod_exeunt",
		Custody: journal.Custody{LeaderLease: "lease", Transitions: m.term}, RemovalDelay: 10 * time.Millisecond,
		ForbiddenFor: m.deniedFor, Recorder: m.events, Metrics: journalstore.NewMetrics(),
	})
	writing, stop := context.WithCancel(m.Ctx)
	ended := make(chan struct{})
	go func(s *journalstore.Store) {
		defer close(ended)
		s.Run(writing)
	}(m.store)
	m.T.Cleanup(func() {
		stop()
		<-ended
	})
	return m.store
}

// entries returns the entries of the journal.
func (m *fixture) entries(kind journal.Kind) []journal.Entry {
	m.T.Helper()
	m.store.Flush(m.Ctx)
	leases, err := m.Client.CoordinationV1().Leases(m.Namespace).List(m.Ctx, metav1.ListOptions{})
	m.Must(err, "list leases")
	var all []journal.Entry
	for i := range leases.Items {
		if is, _, ours := m.store.Journal.KindOf(&leases.Items[i]); ours && is == kind {
			found, _ := journal.Entries(&leases.Items[i])
			all = append(all, found...)
		}
	}
	return all
}

// createRequested creates a claim, as the watch of the controller shows, and waits until the pv-controller requests its
// volume.
func (m *fixture) createRequested(change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	m.T.Helper()
	m.creations.Observe(watch.Event{Type: watch.Added, Object: m.CreateClaim("claim", m.class, change...)})
	return m.AwaitClaim("claim", "has a provisioner annotation", func(c *v1.PersistentVolumeClaim) bool {
		return c.Annotations[storage.AnnStorageProvisioner] != "" && c.Status.Phase == v1.ClaimPending
	})
}

// refresh puts the current claim into the cache.
func (m *fixture) refresh(claim *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	m.T.Helper()
	now, err := m.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(m.Ctx, claim.Name, metav1.GetOptions{})
	m.Must(err, "read claim")
	m.cache(now)
	return now
}

func (m *fixture) cache(claim *v1.PersistentVolumeClaim) {
	m.T.Helper()
	fill(m.Session, m.factory.Core().V1().PersistentVolumeClaims().Informer(), claim)
}

func (m *fixture) reconcile(claim *v1.PersistentVolumeClaim) error {
	return m.controller.Reconcile(m.Ctx, claim.Namespace+"/"+claim.Name+"/"+string(claim.UID))
}

// converge reconciles until no other client has changed the claim meanwhile.
func (m *fixture) converge(claim *v1.PersistentVolumeClaim) {
	m.T.Helper()
	for {
		err := m.reconcile(claim)
		if err == nil {
			return
		}
		if !patch.IsStale(err) {
			m.T.Fatalf("reconcile: %v", err)
		}
		claim = m.refresh(claim)
	}
}

// volumeOf returns the PersistentVolume of the claim, nil if there is none.
func (m *fixture) volumeOf(claim *v1.PersistentVolumeClaim) *v1.PersistentVolume {
	m.T.Helper()
	list, err := m.Client.CoreV1().PersistentVolumes().List(m.Ctx,
		metav1.ListOptions{FieldSelector: "metadata.name=pvc-" + string(claim.UID)})
	m.Must(err, "list volumes")
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

func (m *fixture) event(reason string) string {
	m.T.Helper()
	for {
		select {
		case event := <-m.events.Events:
			if strings.Contains(event, " "+reason+" ") {
				return event
			}
		default:
			m.T.Errorf("no event %s", reason)
			return ""
		}
	}
}

func (m *fixture) expect(what string, got, want any) {
	m.T.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		m.T.Errorf("%s: %v, want %v", what, got, want)
	}
}

// open creates a claim whose volume exists although CreateVolume timed out, and deletes it: it is Terminating or gone.
func (m *fixture) open() *v1.PersistentVolumeClaim {
	m.T.Helper()
	claim := m.refresh(m.createRequested())
	m.storage.next = []fault{{codes.DeadlineExceeded, true}}
	if err := m.reconcile(claim); err == nil {
		m.T.Error("reconcile returned no error after a timeout")
	}
	m.DeleteClaim(claim.Name)
	now, err := m.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(m.Ctx, claim.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // already; the cache is late
		return claim
	}
	m.Must(err, "read claim")
	m.cache(now)
	return now
}

// runLive runs the controller on caches that follow the API server.
func (m *fixture) runLive() {
	m.T.Helper()
	ctx, stop := context.WithCancel(m.Ctx)
	ended := make(chan struct{})
	m.factory.StartWithContext(ctx)
	m.factory.WaitForCacheSync(ctx.Done())
	m.Must(m.controller.Watch(ctx), "register event handlers")
	go func() {
		defer close(ended)
		m.controller.Run(ctx, 2)
	}()
	m.T.Cleanup(func() {
		stop()
		<-ended
		m.factory.Shutdown()
	})
}
