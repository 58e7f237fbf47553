package journalstore_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/journal"
	. "github.com/exeunt-io/exeunt/pkg/provisioner/journalstore"
)

var theJournal = journal.Journal{Namespace: "ns", Driver: "csi.example.com"}

// server stores Leases as the API server does: with versions and conflicts.
type server struct {
	*fake.Clientset
	mu      sync.Mutex
	version int
	leases  map[string]*coordinationv1.Lease
	watches []*watch.RaceFreeFakeWatcher
	// latency is the duration of a write.
	latency time.Duration
	// before and after are hooks around a request; an error of a hook fails the request.
	before, after func(verb string, lease *coordinationv1.Lease) error
	// written is called with every stored Lease, under the lock.
	written func(*coordinationv1.Lease)
	writes  int
	bytes   int
}

func newServer() *server {
	return &server{Clientset: fake.NewClientset(), leases: map[string]*coordinationv1.Lease{}}
}

var leasesResource = coordinationv1.Resource("leases")

// coordination and leaseClient serve Leases concurrently; the fake client set does not.
type coordination struct {
	coordinationclient.CoordinationV1Interface
	server *server
}

func (s *server) CoordinationV1() coordinationclient.CoordinationV1Interface {
	return coordination{server: s}
}

func (c coordination) Leases(string) coordinationclient.LeaseInterface {
	return leaseClient{server: c.server}
}

type leaseClient struct {
	coordinationclient.LeaseInterface
	server *server
}

func (c leaseClient) List(_ context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	s := c.server
	if err := s.hook(false, "list", nil); err != nil {
		return nil, err
	}
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	return s.list(selector), nil
}

func (c leaseClient) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	w := watch.NewRaceFreeFake()
	s.watches = append(s.watches, w)
	return w, nil
}

func (c leaseClient) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	s := c.server
	if err := s.hook(false, "get", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := s.leases[name]
	if stored == nil {
		return nil, apierrors.NewNotFound(leasesResource, name)
	}
	return stored.DeepCopy(), nil
}

func (c leaseClient) Create(_ context.Context, lease *coordinationv1.Lease,
	_ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return c.server.write("create", lease.DeepCopy())
}

func (c leaseClient) Update(_ context.Context, lease *coordinationv1.Lease,
	_ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return c.server.write("update", lease.DeepCopy())
}

func (s *server) write(verb string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if s.latency > 0 {
		<-time.After(s.latency)
	}
	if err := s.hook(false, verb, lease); err != nil {
		return nil, err
	}
	stored, err := s.store(verb, lease)
	if err == nil {
		err = s.hook(true, verb, lease)
	}
	if err != nil {
		return nil, err
	}
	return stored, nil
}

// setHooks changes the hooks while the journal sends requests.
func (s *server) setHooks(before, after func(string, *coordinationv1.Lease) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

func (s *server) hook(after bool, verb string, lease *coordinationv1.Lease) error {
	s.mu.Lock()
	hook := s.before
	if after {
		hook = s.after
	}
	s.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(verb, lease)
}

func (s *server) list(selector labels.Selector) *coordinationv1.LeaseList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, name := range slices.Sorted(maps.Keys(s.leases)) {
		if selector.Matches(labels.Set(s.leases[name].Labels)) {
			list.Items = append(list.Items, *s.leases[name].DeepCopy())
		}
	}
	return list
}

func (s *server) store(verb string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.leases[lease.Name]
	switch {
	case verb == "create" && known != nil:
		return nil, apierrors.NewAlreadyExists(leasesResource, lease.Name)
	case verb == "update" && known == nil:
		return nil, apierrors.NewNotFound(leasesResource, lease.Name)
	case verb == "update" && lease.ResourceVersion != known.ResourceVersion:
		return nil, apierrors.NewConflict(leasesResource, lease.Name,
			fmt.Errorf("version %s, not %s", known.ResourceVersion, lease.ResourceVersion))
	case verb == "update" && isNoChange(known, lease):
		return known.DeepCopy(), nil // as the API server
	}
	stored := s.put(lease)
	s.writes++
	for _, text := range journal.Encoded(stored) {
		s.bytes += len(text)
	}
	return stored.DeepCopy(), nil
}

func isNoChange(known, lease *coordinationv1.Lease) bool {
	next := lease.DeepCopy()
	next.ManagedFields = nil
	return equality.Semantic.DeepEqual(known, next)
}

// put stores the Lease. The caller holds the lock.
func (s *server) put(lease *coordinationv1.Lease) *coordinationv1.Lease {
	stored := lease.DeepCopy()
	s.version++
	stored.ResourceVersion, stored.ManagedFields = strconv.Itoa(s.version), nil
	kind := watch.Modified
	if s.leases[stored.Name] == nil {
		kind = watch.Added
	}
	s.leases[stored.Name] = stored
	s.notify(kind, stored)
	if s.written != nil {
		s.written(stored)
	}
	return stored
}

func (s *server) notify(kind watch.EventType, lease *coordinationv1.Lease) {
	if lease.Labels[journal.KindLabel] == "" {
		kind = watch.Deleted // for those who select by label
	}
	for _, w := range s.watches {
		w.Action(kind, lease.DeepCopy())
	}
}

// edit changes a Lease as another writer.
func (s *server) edit(name string, change func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := s.leases[name]
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: theJournal.Namespace, Name: name}}
	}
	lease = lease.DeepCopy()
	change(lease)
	s.put(lease)
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.leases[name].DeepCopy()
	delete(s.leases, name)
	s.version++
	gone.ResourceVersion = strconv.Itoa(s.version)
	s.notify(watch.Deleted, gone)
}

// entries returns the entries of all stored Leases of the kind, by claim UID.
func (s *server) entries(kind journal.Kind) map[types.UID]journal.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[types.UID]journal.Entry{}
	for _, lease := range s.leases {
		if got, _, ours := theJournal.KindOf(lease); ours && got == kind {
			entries, _ := journal.Entries(lease)
			for _, entry := range entries {
				all[entry.UID] = entry
			}
		}
	}
	return all
}

func (s *server) count() (writes, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, s.bytes
}

func (s *server) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.leases))
}

const pod, otherPod = "pod-1_exeunt", "pod-2_exeunt"

func custodyAt(transitions int32) journal.Custody {
	return journal.Custody{LeaderLease: "leader", Transitions: transitions}
}

func config(s *server, holder string, transitions int32) Config {
	return Config{
		Client: s, Journal: theJournal, Holder: holder, Custody: custodyAt(transitions),
		Interval: 50 * time.Millisecond, RemovalDelay: time.Second, ForbiddenFor: time.Minute,
		Metrics: NewMetrics(), Recorder: record.NewFakeRecorder(1000),
	}
}

// run takes over the journal and runs the store until the test ends.
func run(t testing.TB, store *Store) []journal.Entry {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	inherited, err := store.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() { store.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return inherited
}

// bubble runs the test in a synctest bubble with a fake clock.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func newEntry(number int) journal.Entry {
	uid := types.UID(fmt.Sprintf("%08d-c0de-4c1a-8b5e-0123456789ab", number))
	volume := "pvc-" + string(uid)
	return journal.Entry{
		UID: uid, Namespace: "default", Name: fmt.Sprint("claim-", number),
		Request: journal.Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: volume,
			Parameters: map[string]string{}}},
		Volume: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}},
	}
}

// withParameter returns the entry with a request parameter that identifies the version.
func withParameter(entry journal.Entry, parameter string) journal.Entry {
	entry.Request = journal.Request{CreateVolumeRequest: &csi.CreateVolumeRequest{Name: entry.VolumeName(),
		Parameters: map[string]string{"mark": parameter}}}
	return entry
}

func parameterOf(entry journal.Entry) string {
	return entry.Request.GetParameters()["mark"]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contextWithTimeout returns a context for a step that must not hang.
func contextWithTimeout(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), limit)
	t.Cleanup(stop)
	return ctx
}
