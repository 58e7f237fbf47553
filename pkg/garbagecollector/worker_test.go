package garbagecollector

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	configMapPath = "/api/v1/namespaces/ns/configmaps/"
	dependentPath = configMapPath + "dependent"
)

// configMap returns the metadata of a ConfigMap whose UID is its name.
func configMap(name, version string, owners ...string) metav1.ObjectMeta {
	object := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: version}
	for _, owner := range owners {
		blocks := true
		object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap",
			Name: owner, UID: types.UID(owner), BlockOwnerDeletion: &blocks})
	}
	return object
}

// terminating returns the object as it is being deleted.
func terminating(object metav1.ObjectMeta, finalizers ...string) metav1.ObjectMeta {
	object.DeletionTimestamp, object.Finalizers = &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		finalizers
	return object
}

// observe has the graph know the objects.
func (c *Collector) observe(objects ...metav1.ObjectMeta) {
	c.change(func(g *graph.Graph) {
		for i := range objects {
			g.Observe(configMaps, &objects[i])
		}
	})
}

// slowLimiter lets a request pass after the time.
type slowLimiter struct {
	flowcontrol.RateLimiter
	clock *clocktesting.FakeClock
	after time.Duration
}

func (l slowLimiter) Wait(context.Context) error {
	l.clock.Step(l.after)
	return nil
}

// The live read of an owner is good for a second; a rate limit may delay each request for longer.
func TestRateLimitDoesNotStopForegroundDeletion(t *testing.T) {
	s := newAPIServer(t)
	owner := terminating(configMap("owner", "1"), metav1.FinalizerDeleteDependents)
	s.answer("GET "+configMapPath+"owner", http.StatusOK, partial(owner))
	s.answer("DELETE "+dependentPath, http.StatusOK,
		&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
			Details: &metav1.StatusDetails{UID: "dependent"}})
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	limiter := slowLimiter{clock: clock, after: 4 * time.Second}
	c := connected(t, s, Config{Clock: clock, Limiter: limiter, ReadLimiter: limiter})
	c.observe(owner, configMap("dependent", "2", "owner"))
	pass(c, "owner")
	if err := c.worker.reconcile(t.Context(), "dependent"); err != nil || s.count("DELETE "+dependentPath) != 1 {
		t.Errorf("reconcile = %v after %v", err, s.requests)
	}
}

// The live read of an owner may take longer than it is good for.
func TestSlowReadsDoNotStopOrphanDeletion(t *testing.T) {
	s := newAPIServer(t)
	owner := terminating(configMap("owner", "1"), metav1.FinalizerOrphanDependents)
	s.answer("PATCH "+dependentPath, http.StatusOK, partial(configMap("dependent", "9")))
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	s.handle("GET "+configMapPath+"owner", func(w http.ResponseWriter, _ *http.Request) {
		clock.Step(graph.ReadLifetime * 3 / 2)
		respond(w, http.StatusOK, partial(owner))
	})
	c := connected(t, s, Config{Clock: clock})
	c.observe(owner, configMap("dependent", "2", "owner"))
	if err := c.worker.reconcile(t.Context(), "dependent"); err != nil || s.count("PATCH "+dependentPath) != 1 {
		t.Errorf("reconcile = %v after %v", err, s.requests)
	}
}

// pass lets the owner pass a barrier.
func pass(c *Collector, owner types.UID) {
	c.change(func(g *graph.Graph) {
		epoch, _, _ := g.Epoch(owner)
		g.Passed(owner, epoch, c.clock.Now())
	})
}

// An owner of the dependent cannot be read, as when its API server is away. Another owner lives, so that
// the waiting owner need not wait; and an orphaning owner need not wait either.
func TestUnreadableOwnerDoesNotKeepOthersWaiting(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizer string
		owners    []string
		want      string
	}{
		"foreground": {metav1.FinalizerDeleteDependents, []string{"unreadable", "live", "owner"}, "/metadata/ownerReferences/2"},
		"orphan":     {metav1.FinalizerOrphanDependents, []string{"unreadable", "owner"}, "/metadata/ownerReferences/1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			owner := terminating(configMap("owner", "1"), tc.finalizer)
			s.answer("GET "+configMapPath+"owner", http.StatusOK, partial(owner))
			s.answer("GET "+configMapPath+"live", http.StatusOK, partial(configMap("live", "2")))
			s.answer("GET "+configMapPath+"unreadable", http.StatusServiceUnavailable,
				failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "configmaps", "unreadable"))
			s.answer("PATCH "+dependentPath, http.StatusOK, partial(configMap("dependent", "9", "unreadable")))
			c := connected(t, s, Config{})
			c.observe(owner, configMap("live", "2"), configMap("dependent", "3", tc.owners...))
			if err := c.worker.reconcile(t.Context(), "dependent"); err == nil {
				t.Error("the unreadable owner is not read again")
			}
			if len(s.bodies) != 1 || strings.Count(s.bodies[0], `"remove"`) != 1 || !strings.Contains(s.bodies[0], tc.want) {
				t.Errorf("patches: %v", s.bodies)
			}
		})
	}
}

// An owner that orphans cannot be read. Its dependent has no dependents of its own left.
func TestUnreadableOwnerDoesNotKeepDependentInForeground(t *testing.T) {
	s := newAPIServer(t)
	s.answer("GET "+configMapPath+"owner", http.StatusServiceUnavailable,
		failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "configmaps", "owner"))
	s.answer("PATCH "+dependentPath, http.StatusOK, partial(configMap("dependent", "9", "owner")))
	c := connected(t, s, Config{})
	c.observe(terminating(configMap("owner", "1"), metav1.FinalizerOrphanDependents),
		terminating(configMap("dependent", "3", "owner"), metav1.FinalizerDeleteDependents))
	pass(c, "dependent")
	if err := c.worker.reconcile(t.Context(), "dependent"); err == nil {
		t.Error("the unreadable owner is not read again")
	}
	if len(s.bodies) != 1 || !strings.Contains(s.bodies[0], "/metadata/finalizers/0") {
		t.Errorf("patches: %v", s.bodies)
	}
}

// The graph may be behind the end of an owner: another that waits is not released for its sake.
func TestOwnerThatEndedUnseenFreesNoOther(t *testing.T) {
	s := newAPIServer(t)
	owner := terminating(configMap("owner", "1"), metav1.FinalizerDeleteDependents)
	s.answer("GET "+configMapPath+"owner", http.StatusOK, partial(owner))
	s.answer("GET "+configMapPath+"ended", http.StatusNotFound,
		failure(http.StatusNotFound, metav1.StatusReasonNotFound, "configmaps", "ended"))
	s.answer("DELETE "+dependentPath, http.StatusOK,
		partial(terminating(configMap("dependent", "9", "owner", "ended"), "example.com/held")))
	c := connected(t, s, Config{})
	c.observe(owner, configMap("ended", "2"), configMap("dependent", "3", "owner", "ended"))
	pass(c, "owner")
	if err := c.worker.reconcile(t.Context(), "dependent"); err != nil {
		t.Error(err)
	}
	if got := s.count("PATCH " + dependentPath); got != 0 || s.count("DELETE "+dependentPath) != 1 {
		t.Errorf("%d patches, %d deletions", got, s.count("DELETE "+dependentPath))
	}
}

// The user may change the policy of a deletion while its owner is being read.
func TestReadThatEventOvertookIsNoVerdict(t *testing.T) {
	s := newAPIServer(t)
	c := connected(t, s, Config{})
	owner := terminating(configMap("owner", "1"), metav1.FinalizerDeleteDependents)
	c.observe(owner, configMap("dependent", "2", "owner"))
	orphaning := terminating(configMap("owner", "5"), metav1.FinalizerOrphanDependents)
	s.handle("GET "+configMapPath+"owner", func(w http.ResponseWriter, _ *http.Request) {
		c.observe(orphaning)
		respond(w, http.StatusOK, partial(owner))
	})
	j, _ := c.judge("dependent")
	if err := c.live.verifyOwners(t.Context(), j.Questions); err != nil {
		t.Fatal(err)
	}
	if j, _ = c.judge("dependent"); j.State.Waiting || !j.State.Unverified {
		t.Errorf("judged by the read: %+v", j.State)
	}
}

// After etcd was restored, the graph may be newer than the storage. No deletion may rest on it.
func TestDeletionOfRestoredObjectEndsCollector(t *testing.T) {
	s := newAPIServer(t)
	s.answer("DELETE "+dependentPath, http.StatusConflict, failure(http.StatusConflict, metav1.StatusReasonConflict,
		"configmaps", "dependent"))
	s.answer("GET "+dependentPath, http.StatusOK, partial(configMap("dependent", "5", "live")))
	s.answer("GET "+configMapPath+"absent", http.StatusNotFound,
		failure(http.StatusNotFound, metav1.StatusReasonNotFound, "configmaps", "absent"))
	c := connected(t, s, Config{})
	c.observe(configMap("live", "1"), configMap("dependent", "7", "absent"))
	if err := c.worker.reconcile(t.Context(), "dependent"); !errors.Is(err, ErrRestored) {
		t.Error(err)
	}
	for _, body := range s.bodies {
		if !strings.Contains(body, `"resourceVersion":"7"`) {
			t.Errorf("deletion with %s", body)
		}
	}
}

// Two groups serve the owner, and the dependent names it in both.
func TestOwnerNamedInTwoGroupsIsReleased(t *testing.T) {
	s := newAPIServer(t)
	owner := terminating(configMap("owner", "1"), metav1.FinalizerDeleteDependents)
	other := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "other", Version: "v1", Kind: "ConfigMap"},
		Resource: "configmaps", Namespaced: true}
	s.answer("GET "+configMapPath+"owner", http.StatusOK, partial(owner))
	s.answer("GET /apis/other/v1/namespaces/ns/configmaps/owner", http.StatusOK, partial(owner))
	s.answer("DELETE "+dependentPath, http.StatusOK, &metav1.Status{})
	c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	dependent := configMap("dependent", "6", "owner", "owner")
	dependent.OwnerReferences[1].APIVersion = "other/v1"
	c.change(func(g *graph.Graph) {
		g.Serve(other)
		g.Observe(other, &owner)
	})
	c.observe(owner, dependent)
	pass(c, "owner")
	if err := c.worker.reconcile(t.Context(), "dependent"); err != nil || s.count("DELETE "+dependentPath) == 0 {
		t.Errorf("the dependent stays, and the owner waits for ever: %v after %d requests", err, len(s.requests))
	}
}

func TestDependentMayNameOneUIDAtManyPlaces(t *testing.T) {
	s := newAPIServer(t)
	dependent := configMap("dependent", "3")
	for i := range 300 {
		name := "place-" + strconv.Itoa(i)
		dependent.OwnerReferences = append(dependent.OwnerReferences,
			metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: "owner"})
		s.answer("GET "+configMapPath+name, http.StatusNotFound, failure(http.StatusNotFound, metav1.StatusReasonNotFound,
			"configmaps", name))
	}
	s.answer("DELETE "+dependentPath, http.StatusOK, &metav1.Status{})
	c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
	c.observe(dependent)
	if err := c.worker.reconcile(t.Context(), "dependent"); err != nil || s.count("DELETE "+dependentPath) == 0 ||
		len(s.requests) != 301 {
		t.Errorf("not deleted after %d requests: %v", len(s.requests), err)
	}
}

// Two owners of a slow kind wait for one dependent. A read takes 2.5 s and is good for half a second: both are read
// at once.
func TestOwnersOfSlowKindAreReadTogether(t *testing.T) {
	s := newAPIServer(t)
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	var once sync.Once
	var reading sync.WaitGroup
	reading.Add(2)
	first, second := terminating(configMap("first", "1"), metav1.FinalizerDeleteDependents),
		terminating(configMap("second", "2"), metav1.FinalizerDeleteDependents)
	for _, owner := range []metav1.ObjectMeta{first, second} {
		s.handle("GET "+configMapPath+owner.Name, func(w http.ResponseWriter, _ *http.Request) {
			reading.Done()
			reading.Wait() // both are under way
			once.Do(func() { clock.Step(2500 * time.Millisecond) })
			respond(w, http.StatusOK, partial(owner))
		})
	}
	s.answer("DELETE "+dependentPath, http.StatusOK, &metav1.Status{})
	c := connected(t, s, Config{Clock: clock})
	c.live.slow.sending[configMaps.GroupResource()] = false // the last read was slow
	c.observe(first, second, configMap("dependent", "3", "first", "second"))
	pass(c, "first")
	pass(c, "second")
	if err := c.worker.reconcile(t.Context(), "dependent"); err != nil || s.count("DELETE "+dependentPath) == 0 {
		t.Errorf("the dependent is not deleted after %d requests: %v", len(s.requests), err)
	}
}
