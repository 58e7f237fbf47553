package garbagecollector

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// lack answers that there are no ConfigMaps of these names.
func (s *apiServer) lack(names ...string) {
	for _, name := range names {
		s.answer("GET "+configMapPath+name, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
			"configmaps", name))
	}
}

// deleted has the collector see the event DELETED of a ConfigMap that has dependents.
func (c *Collector) deleted(name string) {
	c.change(func(g *graph.Graph) {
		g.Deleted(types.UID(name), graph.Coordinates{GroupKind: configMaps.GroupKind(), Namespace: "ns", Name: name})
	})
}

// readAbsent has the collector have read live that there is no ConfigMap of the name, now.
func (c *Collector) readAbsent(name string) {
	c.deleted(name)
	c.change(func(g *graph.Graph) {
		g.ReadAbsent(types.UID(name), graph.Coordinates{GroupKind: configMaps.GroupKind(), Namespace: "ns", Name: name},
			c.clock.Now())
	})
}

// The owner was deleted, and a restore of etcd brought it back. The dependent, which was not deleted yet, has the
// version that it had.
func TestOwnerThatRestoreBroughtBackKeepsDependent(t *testing.T) {
	for write, owners := range map[string][]string{"DELETE": {"restored"}, "PATCH": {"live", "restored"}} {
		t.Run(write, func(t *testing.T) {
			s := newAPIServer(t)
			s.answer("GET "+configMapPath+"restored", http.StatusOK, partial(configMap("restored", "1")))
			s.answer(write+" "+dependentPath, http.StatusOK, partial(configMap("dependent", "6", owners[:1]...)))
			c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
			c.observe(configMap("live", "1"), configMap("restored", "1"), configMap("dependent", "5", owners...))
			c.deleted("restored")
			if err := c.worker.reconcile(t.Context(), "dependent"); err != nil || s.count(write+" "+dependentPath) > 0 {
				t.Errorf("reconcile = %v: the absence of the owner is taken from memory: %v", err, s.requests)
			}
			if got := s.count("GET " + configMapPath + "restored"); got != 1 {
				t.Errorf("%d reads of the owner", got)
			}
		})
	}
}

// The owner is absent. A read of it precedes the deletion, and those of all its dependents share one read a second.
func TestAbsentOwnerIsReadOnceASecond(t *testing.T) {
	s := newAPIServer(t)
	s.lack("owner")
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	c := connected(t, s, Config{Clock: clock})
	for i := range 200 {
		name := "dependent-" + strconv.Itoa(i)
		s.answer("DELETE "+configMapPath+name, http.StatusOK, &metav1.Status{})
		c.observe(configMap(name, "5", "owner"))
	}
	c.deleted("owner")
	for i := range 200 {
		if i == 100 {
			clock.Step(graph.ReadLifetime)
		}
		name := "dependent-" + strconv.Itoa(i)
		if err := c.worker.reconcile(t.Context(), types.UID(name)); err != nil || s.count("DELETE "+configMapPath+name) != 1 {
			t.Fatal(name, err)
		}
	}
	if got := s.count("GET " + configMapPath + "owner"); got != 2 || len(s.requests) != 202 {
		t.Errorf("%d reads of the owner within two seconds, %d requests", got, len(s.requests))
	}
}

// A refused write is repeated with backoff, and its owners are not read meanwhile.
func TestPausedWriteReadsNoOwner(t *testing.T) {
	s := newAPIServer(t)
	s.lack("absent")
	s.answer("GET "+dependentPath, http.StatusOK, partial(configMap("dependent", "5", "absent")))
	s.answer("DELETE "+dependentPath, http.StatusForbidden, denial(http.StatusForbidden, metav1.StatusReasonForbidden))
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	c := connected(t, s, Config{Clock: clock})
	c.observe(configMap("dependent", "5", "absent"))
	c.deleted("absent")
	for range 30 {
		_ = c.worker.reconcile(t.Context(), "dependent")
		clock.Step(graph.ReadLifetime)
	}
	if reads, writes := s.count("GET "+configMapPath+"absent"), s.count("DELETE "+dependentPath); writes > 5 ||
		reads > writes {
		t.Errorf("%d reads of the owner for %d writes", reads, writes)
	}
}

// The definition of the owner's kind ended after the owner. A restore brought both back, and discovery does not know
// yet.
func TestOwnerOfWithdrawnKindIsReadBeforeDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		status  int
		answer  any
		deleted bool
	}{
		"the path is not served": {http.StatusNotFound, nil, true},
		"the owner exists":       {http.StatusOK, partial(configMap("owner", "1")), false},
		"the read fails": {http.StatusServiceUnavailable, failure(http.StatusServiceUnavailable,
			metav1.StatusReasonServiceUnavailable, "widgets", "owner"), false},
	} {
		t.Run(name, func(t *testing.T) {
			widgets, _ := aggregatedWidgets()
			s := newAPIServer(t)
			if tc.answer != nil {
				s.answer("GET /apis/aggregated/v1/namespaces/ns/widgets/owner", tc.status, tc.answer)
			}
			s.answer("DELETE "+dependentPath, http.StatusOK, &metav1.Status{})
			c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
			dependent := configMap("dependent", "5")
			dependent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "aggregated/v1", Kind: "Widget", Name: "owner",
				UID: "owner"}}
			c.observe(dependent)
			c.change(func(g *graph.Graph) {
				g.Serve(widgets)
				g.Deleted("owner", graph.Coordinates{GroupKind: widgets.GroupKind(), Namespace: "ns", Name: "owner"})
				g.Drop(widgets)
			})
			err := c.worker.reconcile(t.Context(), "dependent")
			if got := s.count("DELETE "+dependentPath) > 0; got != tc.deleted || errors.Is(err, errUnfinished) {
				t.Errorf("deleted %v, %v after %v", got, err, s.requests)
			}
		})
	}
}

// An aggregated API server was uninstalled and is installed again. Its objects, which were seen to end, exist: its
// storage was restored.
func TestOwnerOfReinstalledAPIServiceKeepsDependent(t *testing.T) {
	widgets, _ := aggregatedWidgets()
	s := newAPIServer(t)
	path := "/apis/aggregated/v1/namespaces/ns/widgets/owner"
	s.answer("GET "+path, http.StatusOK, partial(configMap("owner", "1")))
	s.answer("DELETE "+dependentPath, http.StatusOK, &metav1.Status{})
	c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	dependent := configMap("dependent", "5")
	dependent.OwnerReferences = []metav1.OwnerReference{{APIVersion: "aggregated/v1", Kind: "Widget", Name: "owner",
		UID: "owner"}}
	c.observe(dependent)
	at := graph.Coordinates{GroupKind: widgets.GroupKind(), Namespace: "ns", Name: "owner"}
	c.change(func(g *graph.Graph) {
		g.Serve(widgets)
		g.Deleted("owner", at)
		g.Drop(widgets)
		g.Serve(widgets)
	})
	if err := c.worker.reconcile(t.Context(), "dependent"); err != nil || s.count("DELETE "+dependentPath) > 0 {
		t.Errorf("reconcile = %v: deleted although the owner exists again: %v", err, s.requests)
	}
	s.answer("GET "+path, http.StatusServiceUnavailable, failure(http.StatusServiceUnavailable,
		metav1.StatusReasonServiceUnavailable, "widgets", "owner"))
	c.change(func(g *graph.Graph) { g.Deleted("owner", at) })
	if err := c.worker.reconcile(t.Context(), "dependent"); err == nil || s.count("DELETE "+dependentPath) > 0 {
		t.Errorf("reconcile = %v: deleted although the owner cannot be read: %v", err, s.requests)
	}
}
