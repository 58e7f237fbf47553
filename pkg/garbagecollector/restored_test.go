package garbagecollector

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// aggregatedMonitor serves a kind that an aggregated API server may serve, and returns its monitor.
func (c *Collector) aggregatedMonitor() *monitor {
	kind, _ := aggregatedWidgets()
	m := &monitor{watches: c.watches, kind: kind}
	c.graph.Serve(kind)
	c.watches.monitors[kind.GroupKind()] = m
	return m
}

// receive has the monitor receive a list object by object, as a reflector does.
func (m *monitor) receive(t *testing.T, list []any, version string) error {
	t.Helper()
	store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.WithTransformer(m.Transformer()))
	for _, object := range list {
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	return m.Replace(store.List(), version)
}

// restoredReads are reads of a storage that was restored from a backup of version 500: with the version it had, or
// with a raised one, as etcdutl snapshot restore --bump-revision does. The watch had come to version 1000, and had
// delivered the object one with version 900.
func restoredReads(t *testing.T) map[string]func(monitored) error {
	restored := func() *metav1.PartialObjectMetadata { return metadataOf("one", 400) }
	return map[string]func(monitored) error{
		"an older list":                          func(m monitored) error { return m.Replace(nil, "510") },
		"a newer list of an older object":        func(m monitored) error { return m.Replace([]any{restored()}, "1000000") },
		"a received older list":                  func(m monitored) error { return m.receive(t, nil, "510") },
		"a received newer list of older objects": func(m monitored) error { return m.receive(t, []any{restored()}, "1000000") },
		"an older list of a barrier":             func(m monitored) error { return m.collector.readsSince(m.kind, "1000").record(m.kind, "510", nil) },
		"a newer list of a barrier": func(m monitored) error {
			return m.collector.readsSince(m.kind, "1000").record(m.kind, "1000000", []metav1.PartialObjectMetadata{*restored()})
		},
		"an older list, and an event before it":   func(m monitored) error { m.UpdateResourceVersion("1001"); return m.Replace(nil, "1000") },
		"a list of a barrier that the watch left": func(m monitored) error { return m.collector.readsSince(m.kind, "1000").record(m.kind, "999", nil) },
		"a live read": func(m monitored) error {
			j, _ := m.judge("one")
			return m.collector.live.recordLive(j.Object, restored())
		},
	}
}

func TestOlderStateEndsCollector(t *testing.T) {
	for name, read := range restoredReads(t) {
		t.Run(name, func(t *testing.T) {
			m := newMonitor()
			if err := m.Replace([]any{metadataOf("one", 900)}, "1000"); err != nil || m.isRestored() {
				t.Fatal(err, m.isRestored())
			}
			if err := read(m); err != nil && !errors.Is(err, ErrRestored) {
				t.Fatal(err)
			}
			if !m.isRestored() {
				t.Fatal("the collector goes on with what it remembers")
			}
			m.collector.discovery.client = &fakeDiscovery{err: errors.New("the API server is away")}
			for name, run := range map[string]func() error{"watch": func() error { return m.collector.Watch(t.Context()) },
				"collect": func() error { return m.collector.Collect(t.Context()) }} {
				if err := run(); !errors.Is(err, ErrRestored) {
					t.Errorf("%s = %v", name, err)
				}
			}
		})
	}
}

func TestNewerStateIsNoRestore(t *testing.T) {
	for name, read := range map[string]func(monitored) error{
		"the same list again": func(m monitored) error { return m.Replace([]any{metadataOf("one", 900)}, "1000") },
		"a newer list":        func(m monitored) error { return m.receive(t, []any{metadataOf("one", 1001)}, "1002") },
		"an object that a live read showed newer": func(m monitored) error {
			return errors.Join(m.Add(metadataOf("one", 1100)), m.Replace([]any{metadataOf("one", 900)}, "1050"))
		},
		"an object that was gone": func(m monitored) error {
			return errors.Join(m.Delete(metadataOf("one", 1001)), m.Replace([]any{metadataOf("one", 900)}, "1001"))
		},
		"a list of a barrier that the watch passed": func(m monitored) error {
			m.UpdateResourceVersion("2000")
			if err := m.collector.readsSince(m.kind, "1000").record(m.kind, "1500",
				[]metav1.PartialObjectMetadata{*metadataOf("one", 900)}); !errors.Is(err, errAhead) {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMonitor()
			if err := errors.Join(m.Replace([]any{metadataOf("one", 900)}, "1000"), read(m)); err != nil || m.isRestored() {
				t.Errorf("error %v, restored %v", err, m.isRestored())
			}
		})
	}
}

// The storage of an aggregated API server concerns its kinds only, and a restart is no way out: it may begin anew
// with each process.
func TestOlderStateOfAggregatedKindIsListed(t *testing.T) {
	for name, read := range restoredReads(t) {
		t.Run(name, func(t *testing.T) {
			c := New(Config{Clock: clock.RealClock{}})
			m := c.aggregatedMonitor()
			restarts := 0
			m.restart = func() { restarts++ }
			if err := m.Replace([]any{metadataOf("one", 900)}, "1000"); err != nil {
				t.Fatal(err)
			}
			err := read(monitored{m, c})
			if c.restore.isRestored() || err != nil && !errors.Is(err, errBehind) {
				t.Errorf("error %v, ended %v", err, c.restore.isRestored())
			}
			if again := read(monitored{m, c}); err != nil && (again == nil || restarts != 1) {
				t.Errorf("%d lists within a minute, %v", restarts, again)
			}
		})
	}
}

func TestListOfAggregatedKindReplacesNewerState(t *testing.T) {
	for name, version := range map[string]string{"the same versions again": "510", "raised versions": "1000000"} {
		t.Run(name, func(t *testing.T) {
			c := New(Config{Clock: clock.RealClock{}})
			m := c.aggregatedMonitor()
			restored := metadataOf("one", 400)
			restored.DeletionTimestamp, restored.Finalizers = &metav1.Time{Time: time.Unix(1, 0)},
				[]string{metav1.FinalizerDeleteDependents}
			if err := errors.Join(m.Replace([]any{metadataOf("one", 900)}, "1000"),
				m.receive(t, []any{restored}, version)); err != nil {
				t.Fatal(err)
			}
			if _, waits := c.graph.WaitingOwner("one"); !waits {
				t.Error("the restored state of the object is ignored")
			}
		})
	}
}

// The storage of an aggregated API server was restored and its watch says nothing, or its objects have no versions,
// or always the same. The live read shows an owner that lives.
func TestLiveReadOfAggregatedKindKeepsDependent(t *testing.T) {
	for name, versions := range map[string][2]string{"versions went back": {"5000", "12"}, "no versions": {"", ""},
		"constant versions": {"1", "1"}} {
		t.Run(name, func(t *testing.T) {
			widgets, path := aggregatedWidgets()
			s := newAPIServer(t)
			s.answer("GET "+path, http.StatusOK, partial(configMap("dependent", versions[1], "live")))
			s.answer("GET "+configMapPath+"absent", http.StatusNotFound,
				failure(http.StatusNotFound, metav1.StatusReasonNotFound, "configmaps", "absent"))
			s.answer("DELETE "+path, http.StatusOK, &metav1.Status{})
			c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
			c.observe(configMap("live", "1"))
			known := configMap("dependent", versions[0], "absent")
			c.change(func(g *graph.Graph) {
				g.Serve(widgets)
				g.Observe(widgets, &known)
			})
			err := c.worker.reconcile(t.Context(), "dependent")
			if s.count("DELETE "+path) > 0 || len(s.requests) > 5 {
				t.Errorf("deleted, or read again and again, although the live read shows an owner that lives: %v, %v", err,
					s.requests)
			}
		})
	}
}

func TestEventWithTheSameVersionIsRecorded(t *testing.T) {
	for name, version := range map[string]string{"none": "", "constant": "1"} {
		t.Run(name, func(t *testing.T) {
			m := newMonitor()
			if err := errors.Join(m.Add(partial(configMap("dependent", version, "absent"))),
				m.Update(partial(configMap("dependent", version, "live")))); err != nil {
				t.Fatal(err)
			}
			if _, edges := m.graph.Dump("dependent"); len(edges) != 1 || edges[0].To != "live" {
				t.Errorf("edges: %v", edges)
			}
		})
	}
}

func TestNothingIsWrittenAfterRestore(t *testing.T) {
	s, c := withMiddle(t, "DELETE", http.StatusOK, &metav1.Status{}, "absent")
	if err := c.live.verifyOwners(t.Context(),
		[]graph.Question{{Owner: "absent", Kind: configMaps, At: graph.Coordinates{GroupKind: configMaps.GroupKind(),
			Namespace: "ns", Name: "absent"}}}); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.restore.end(configMaps)
	c.mu.Unlock()
	if err := c.worker.reconcile(t.Context(), "middle"); !errors.Is(err, ErrRestored) ||
		s.count("DELETE "+configMapPath+"middle") > 0 {
		t.Errorf("reconcile = %v after %v", err, s.requests)
	}
}

// Another server behind the address of the API server may answer with an empty list, which has no version.
func TestBarrierTakesNoListWithoutVersion(t *testing.T) {
	s := newAPIServer(t)
	s.answer("GET /api/v1/namespaces/ns/configmaps", http.StatusOK,
		metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1",
			Kind: "PartialObjectMetadataList"}})
	c := connected(t, s, Config{})
	c.watches.monitors[configMaps.GroupKind()] = &monitor{watches: c.watches, kind: configMaps, position: "1",
		reached: "1", listed: true}
	run := barrier.Begin[*graph.Kind](time.Hour)
	run.Add(configMaps)
	r := c.barriers.newReads(run, "ns")
	for name, read := range map[string]error{"probe": r.probe(t.Context(), configMaps),
		"list": r.list(t.Context(), configMaps, pageTimeout)} {
		if read == nil || !strings.Contains(read.Error(), "version") || run.Saw(configMaps) {
			t.Errorf("%s = %v, seen %v", name, read, run.Saw(configMaps))
		}
	}
}

// The finalizer of an owner was removed, or a dependent deleted, and a restore of etcd undid that before the event
// came: the object has the version that the graph knows.
func TestUndoneWriteIsRepeatedAfterList(t *testing.T) {
	for name, object := range map[string]metav1.ObjectMeta{
		"owner":     terminating(configMap("owner", "900"), metav1.FinalizerOrphanDependents),
		"dependent": configMap("dependent", "900", "absent"),
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Config{Clock: clock.RealClock{}})
			m := &monitor{watches: c.watches, kind: configMaps}
			c.watches.monitors[configMaps.GroupKind()] = m
			c.graph.Serve(configMaps)
			if err := m.Replace([]any{partial(object)}, "1000"); err != nil {
				t.Fatal(err)
			}
			c.change(func(g *graph.Graph) { g.Sent(object.UID, "900") })
			c.begin()
			for c.worker.queue.Len() > 0 {
				uid, _ := c.worker.queue.Get()
				c.worker.queue.Done(uid)
			}
			if err := m.receive(t, []any{partial(object)}, "1000000"); err != nil {
				t.Fatal(err)
			}
			if j, _ := c.judge(object.UID); c.worker.queue.Len() == 0 || j.State.Sent {
				t.Errorf("%d objects to judge, %+v", c.worker.queue.Len(), j.State)
			}
		})
	}
}
