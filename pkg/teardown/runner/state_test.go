package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller/servertime"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// Each kubelet renews its Lease every 10 s: a round for each would never end in a large cluster.
func TestRenewedLeaseBringsNoRound(t *testing.T) {
	s := newSession(newTestRunner(t, nil), nil, deletedAlive(true), time.Time{})
	f := newFeed(s.update, s.set, s.inventory.Remove)
	rounds := func() bool {
		select {
		case <-s.changes:
			return true
		default:
			return false
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "driver", Name: "external-attacher", UID: "1"}}
	if _ = f.Add(lease); !rounds() {
		t.Error("a new Lease brings no round")
	}
	renewed := lease.DeepCopy()
	renewed.Spec.RenewTime = new(metav1.NowMicro())
	if _ = f.Update(renewed); rounds() {
		t.Error("a renewed Lease brings a round")
	}
	if _ = f.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1.NamespaceNodeLease, Name: "n", UID: "2"}}); rounds() {
		t.Error("the Lease of a node brings a round")
	}
	if _ = f.Update(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "3"}}); !rounds() {
		t.Error("a pod brings no round")
	}
}

// A platform may refuse policies, or remove them at once.
func TestFreezeThatDoesNotGetIntoForceIsNotReady(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "policies"}, FreezeName, errors.New("the platform"))
	for name, tc := range map[string]struct {
		err    error
		denied int
		failed bool
	}{
		"admitted":         {nil, 0, true},
		"in force":         {nil, probes, false},
		"refused":          {forbidden, 0, true},
		"throttled":        {apierrors.NewTooManyRequests("later", 1), 0, false},
		"internal error":   {apierrors.NewInternalError(errors.New("etcd")), 0, false},
		"no answer at all": {errors.New("connection refused"), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := deletedAlive(false)
				s := newSession(newTestRunner(t, object), nil, object, time.Time{})
				for range 3 {
					if err := s.limitFreeze(wordIn(object), func() error {
						s.freeze.denied = tc.denied
						return tc.err
					}); !errors.Is(err, tc.err) {
						t.Errorf("the error is %v", err)
					}
					sleep(t.Context(), s.Waits.Freeze)
				}
				object.Spec.ConfirmedAt = new(metav1.NewTime(object.Spec.ConfirmedAt.Time))
				if got := s.freeze.failed.Equal(wordIn(object).at); got != tc.failed {
					t.Errorf("failed %t, want %t", got, tc.failed)
				}
				object.Spec.Timeout = &metav1.Duration{Duration: alive.MaxTimeout}
				if got := s.readinessOf(t.Context(), object); tc.failed && got != teardown.Unready {
					t.Errorf("the readiness is %s", got)
				}
			})
		})
	}
}

// What was lost or edited makes reports poorer, which they say.
func TestReportSaysWhatTheRecordLacks(t *testing.T) {
	object := deletedAlive(true)
	r := newTestRunner(t, object)
	s := newSession(r, nil, object, time.Time{})
	s.record.saved = map[string]int{}
	item := teardown.Item{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolume", Name: "a", UID: "a"},
		Plan: teardown.PlanDelete, Fate: teardown.Planned}
	if err := s.savePlan(t.Context(), view{items: []teardown.Item{item}}); err != nil {
		t.Fatal(err)
	}
	found, err := r.loadRecord(t.Context(), "old")
	if err != nil || !found.planned || len(found.items) != 1 || len(found.lacking) != 0 {
		t.Fatalf("the record is %+v, %v", found, err)
	}
	maps := r.Objects.CoreV1().ConfigMaps(Namespace)
	edited, err := maps.Get(t.Context(), planName+"0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edited.BinaryData[itemsKey] = []byte("edited")
	third := edited.DeepCopy()
	third.Name = planName + "2"
	if _, err := maps.Update(t.Context(), edited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), third, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	found, err = r.loadRecord(t.Context(), "old")
	text := strings.Join(found.lacking, "\n")
	if err != nil || !found.planned || !strings.Contains(text, planName+"0 was edited") || !strings.Contains(text, planName+"1 of the plan is lost") {
		t.Errorf("the record is %+v, %v", found, err)
	}
}

func TestLaterItemReplacesOnlyIfUnknown(t *testing.T) {
	item := func(fate teardown.Fate, reason string) teardown.Item {
		return teardown.Item{Kind: teardown.Volume, Object: teardown.Object{UID: "a"}, Fate: fate, Reason: reason}
	}
	r := recording{saved: map[string]int{}}
	r.add([]teardown.Item{item(teardown.Planned, "first")})
	r.add([]teardown.Item{item(teardown.Planned, "second")})
	if len(r.items) != 1 || r.items[0].Reason != "first" {
		t.Errorf("items %+v", r.items)
	}
	if lacking := r.unsaved([]teardown.Item{item(teardown.Unknown, "third")}); len(lacking) != 1 {
		t.Error("an unknown outcome is not saved")
	}
	r.add([]teardown.Item{item(teardown.Unknown, "third")})
	if len(r.items) != 1 || r.items[0].Fate != teardown.Unknown || len(r.unknown()) != 1 || len(r.unsaved(r.items)) != 0 {
		t.Errorf("items %+v", r.items)
	}
}

// Each is named by itself in the record and in what is explained.
func TestParticipantsAreRecordedOneByOne(t *testing.T) {
	i := inventory.New(inventory.Options{})
	i.SetParticipants([]inventory.Participant{{Finalizer: "a.example.com/x"}, {Finalizer: "b.example.com/x"}})
	r := recording{saved: map[string]int{}}
	r.add(i.Items(time.Time{}))
	if len(r.items) != 2 {
		t.Errorf("recorded %d of 2 participants", len(r.items))
	}
}

func TestStuckNeedsEvidenceForAll(t *testing.T) {
	item := func(fate teardown.Fate, verdict blocker.Verdict) teardown.Item {
		return teardown.Item{Plan: teardown.PlanDelete, Fate: fate, Blockers: []blocker.Blocker{{Verdict: verdict}}}
	}
	stuck, waits := item(teardown.Remains, blocker.Stuck), item(teardown.Remains, blocker.Waiting)
	kept := teardown.Item{Plan: teardown.PlanKeep, Fate: teardown.Kept}
	for name, tc := range map[string]struct {
		document teardown.Document
		want     bool
	}{
		"nothing is left":  {teardown.Document{Items: []teardown.Item{kept, item(teardown.Gone, blocker.Gone)}}, false},
		"all stuck":        {teardown.Document{Items: []teardown.Item{kept, stuck, item(teardown.Gone, blocker.Gone)}}, true},
		"one waits":        {teardown.Document{Items: []teardown.Item{stuck, waits}}, false},
		"one is unknown":   {teardown.Document{Items: []teardown.Item{stuck, item(teardown.Unknown, blocker.Gone)}}, false},
		"something unread": {teardown.Document{Items: []teardown.Item{stuck}, Incomplete: []string{"pods"}}, false},
	} {
		if got := Stuck(&tc.document); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestTextOfStatusIsAsTheAPIServerStoresIt(t *testing.T) {
	if got := cut(strings.Repeat("ä", maxText)); !strings.HasPrefix(got, "ä") || strings.ToValidUTF8(got, "?") != got || len(got) > maxText+3 {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-10:])
	}
	if got := cut("a\xffb"); got != "ab" {
		t.Errorf("%q", got)
	}
}

// A runner without its namespace has no Lease: it stops, and Alive stays.
func TestRunnerStopsWithoutItsNamespace(t *testing.T) {
	deleted := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace, DeletionTimestamp: new(metav1.Now()),
		Finalizers: []string{"kubernetes"}}}
	for name, namespaces := range map[string][]runtime.Object{"gone": nil, "deleted": {deleted}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTestRunner(t, nil, namespaces...)
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				go r.watchNamespace(ctx, stop)
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), ErrNamespaceGone) {
					t.Errorf("the cause is %v", context.Cause(ctx))
				}
				synctest.Wait()
			})
		})
	}
}

func TestFollowerEndsOnceLeaderKnowsTheSpec(t *testing.T) {
	object := deletedAlive(true)
	object.Generation, object.Status.Phase = 3, alive.Stopped
	object.Status.Conditions = []metav1.Condition{{Type: alive.ConditionReady, ObservedGeneration: 2}}
	if isStopped(object) {
		t.Error("stopped by an older spec")
	}
	object.Status.Conditions[0].ObservedGeneration = 3
	if !isStopped(object) {
		t.Error("the leader has stopped, and is followed for ever")
	}
	object.Status.Conditions[0].Reason = alive.ReasonRightsMissing
	if isStopped(object) {
		t.Error("stopped by a runner that does not lead")
	}
}

// A status with 50 objects whose names, handles and texts are as long as can be stays below 64 KiB.
func TestStatusIsBounded(t *testing.T) {
	s := newSession(newTestRunner(t, nil), nil, deletedAlive(true), time.Time{})
	var items []teardown.Item
	for i := range 2 * alive.MaxRemaining {
		items = append(items, teardown.Item{Object: teardown.Object{Kind: "PersistentVolume", UID: strconv.Itoa(i),
			Name: strings.Repeat("n", 253)}, ExternalID: strings.Repeat("\x01", 2*maxText), Reason: "Bound"})
	}
	named := s.explained(items)
	text, err := json.Marshal(named)
	if err != nil || len(text) > 60<<10 || len(named) == 0 {
		t.Errorf("%d objects in %d bytes, %v", len(named), len(text), err)
	}
	for i := range items {
		items[i].ExternalID = "handle"
	}
	if named := s.explained(items); len(named) != alive.MaxRemaining {
		t.Errorf("%d of %d objects are named", len(named), len(items))
	}
}

// One event for each stuck item, and not at each explanation.
func TestStuckItemIsToldOnce(t *testing.T) {
	r := newTestRunner(t, nil)
	r.current = deletedAlive(true)
	events := record.NewFakeRecorder(10)
	r.Recorder = events
	s := newSession(r, nil, r.current, time.Time{})
	item := teardown.Item{Kind: teardown.LoadBalancer, Object: teardown.Object{Kind: "Service", Namespace: "shop", Name: "web", UID: "1"}}
	known := explanation{blockers: []blocker.Blocker{{Verdict: blocker.Stuck}}}
	start := time.Unix(1e9, 0)
	for _, after := range []time.Duration{0, time.Minute, 31 * time.Minute} {
		s.learn(view{now: start.Add(after), items: []teardown.Item{item}}, map[string]explanation{keyOf(&item): known})
	}
	if len(events.Events) != 2 {
		t.Errorf("%d events", len(events.Events))
	}
	if text := <-events.Events; !strings.Contains(text, "Warning Remains Service shop/web remains") {
		t.Errorf("%q", text)
	}
}

// The runner that recorded a request and saw its claim go is dead (#21, #60).
func TestNewRunnerMissesRecordedRequests(t *testing.T) {
	s := &session{Runner: New(Config{Clients: &Clients{Clock: servertime.New()}}), inventory: inventory.New(inventory.Options{}),
		watched: 1, listed: 1}
	s.record = recordOf(teardown.Item{Kind: teardown.Volume, Plan: teardown.PlanDelete, Fate: teardown.Planned,
		Object: teardown.Object{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "data"}})
	for range 2 {
		if v := s.look(); len(v.items) != 1 || v.items[0].Fate != teardown.Unknown {
			t.Errorf("items %+v", v.items)
		}
	}
}
