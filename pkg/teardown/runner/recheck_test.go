package runner

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// requestedClaim returns a pending claim whose provisioner was asked for a volume.
func requestedClaim(labels map[string]string) *v1.PersistentVolumeClaim {
	claim := testClaim("data", false, nil)
	claim.Labels, claim.Spec.VolumeName, claim.Status.Phase = labels, "", v1.ClaimPending
	claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": "ebs"}
	return claim
}

// What the watches have shown to be quiet must be so in the lists at the end, or the teardown never completes.
func TestRecheckKnowsWhatTheSessionLearned(t *testing.T) {
	kept := requestedClaim(map[string]string{inventory.PreserveLabel: ""})
	gone, late := requestedClaim(nil), testVolume("data", v1.VolumeReleased)
	late.Spec.ClaimRef.UID = gone.UID
	for name, tc := range map[string]struct {
		listed []runtime.Object
		learn  func(s *session, at time.Time)
	}{
		"a kept request without answer": {[]runtime.Object{kept}, func(s *session, at time.Time) {
			s.inventory.Set(kept)
			s.inventory.Work(at)
		}},
		"an unknown that got its volume": {nil, func(s *session, at time.Time) {
			s.inventory.Set(gone)
			s.inventory.Work(at)
			s.inventory.Remove(gone)
			s.record.add(s.inventory.Items(at))
			s.inventory.Set(late)
			s.inventory.Remove(late)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			object := deletedAlive(true)
			object.Finalizers = []string{alive.Finalizer} // no participant is left
			r := newTestRunner(t, object, tc.listed...)
			r.current = object
			s := newSession(r, nil, object, time.Time{})
			s.record.saved = map[string]int{}
			now := s.Clock.Now()
			tc.learn(s, now.Add(-time.Hour))
			watchAll(t, s)
			if work := s.inventory.Work(now); work != teardown.Quiet {
				t.Fatalf("the watches say %s", work)
			}
			if err := s.recheck(t.Context(), view{now: now}); err != nil || s.end.clean != 1 {
				t.Errorf("%d clean lists, %v", s.end.clean, err)
			}
		})
	}
}

// watchAll has the session know the kinds that are served.
func watchAll(t *testing.T, s *session) {
	t.Helper()
	sources, err := s.sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range sources {
		s.kinds[one.id()] = true
	}
}

type leads bool

func (l leads) Leading() bool       { return bool(l) }
func (leads) ID() controller.TermID { return controller.TermID{} }

// A runner that is killed, or interrupted, leaves to others what became of the claims that it saw go.
func TestOutcomesAreSavedAtOnce(t *testing.T) { // 21, 60
	object := deletedAlive(true)
	object.Finalizers = []string{alive.Finalizer}
	object.Spec.Protected = new(true) // nothing is deleted, and no report is written
	r := newTestRunner(t, object, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: clusterID}})
	r.current, r.synced = object, true
	s := newSession(r, leads(true), object, time.Now())
	if err := s.readRecord(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.watched, s.listed, s.freeze.parts[0].listed, s.freeze.parts[1].listed = 1, 1, true, true
	claim, late := requestedClaim(nil), testVolume("data", v1.VolumeReleased)
	late.Spec.ClaimRef.UID = claim.UID
	s.inventory.Set(claim)
	if err := s.savePlan(t.Context(), s.look()); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		change func()
		want   teardown.Fate
		maps   int
	}{
		{func() { s.inventory.Remove(claim) }, teardown.Unknown, 2},
		{func() {}, teardown.Unknown, 2},
		{func() { s.inventory.Set(late); s.inventory.Remove(late) }, teardown.Gone, 2},
		{func() {}, teardown.Gone, 2},
	} {
		tc.change()
		if _, err := s.round(t.Context(), t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		found, err := r.loadRecord(t.Context(), "old")
		if err != nil || len(found.items) != 1 || found.items[0].Fate != tc.want {
			t.Errorf("the record is %+v, %v, want %s", found.items, err, tc.want)
		}
		if maps, err := r.recordMaps(t.Context()); err != nil || len(maps) != tc.maps {
			t.Errorf("%d ConfigMaps, %v, want %d", len(maps), err, tc.maps)
		}
	}
}

// The provisioner said of a claim that no disk was made. Only the runner that saw this and deleted the claim knows it.
func TestFailedRequestIsRecordedAsGone(t *testing.T) { // 21, 60
	object := deletedAlive(true)
	object.Finalizers, object.Spec.Protected = []string{alive.Finalizer}, new(true)
	r := newTestRunner(t, object, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: clusterID}})
	r.Clients.Config.Host = "https://127.0.0.1:1"
	r.current, r.synced = object, true
	s := newSession(r, leads(true), object, time.Now())
	if err := s.readRecord(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.watched, s.listed, s.freeze.parts[0].listed, s.freeze.parts[1].listed = 1, 1, true, true
	claim := requestedClaim(nil)
	s.inventory.Set(claim)
	if err := s.savePlan(t.Context(), s.look()); err != nil {
		t.Fatal(err)
	}
	refused := &v1.Event{Reason: "ProvisioningFailed", Message: "rpc error: code = InvalidArgument desc = no",
		InvolvedObject: v1.ObjectReference{Kind: "PersistentVolumeClaim", UID: claim.UID}, LastTimestamp: metav1.Now()}
	for _, tc := range []struct {
		change           func()
		recorded, report teardown.Fate
	}{
		{func() { s.inventory.Set(refused) }, teardown.Planned, teardown.Unknown}, // the claim is there, and may be requested again
		{func() { s.inventory.Remove(claim) }, teardown.Gone, teardown.Gone},
	} {
		tc.change()
		if _, err := s.round(t.Context(), t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		found, err := r.loadRecord(t.Context(), "old")
		if err != nil || len(found.items) != 1 || found.items[0].Fate != tc.recorded {
			t.Errorf("the record is %+v, %v, want %s", found.items, err, tc.recorded)
		}
		report, err := r.Report(t.Context())
		if err != nil || len(report.Items) != 1 || report.Items[0].Fate != tc.report {
			t.Errorf("the report is %+v, %v, want %s", report, err, tc.report)
		}
	}
}

// Nothing is written without a live read of the cluster and of Alive.
func TestOutcomesAreNotSavedElsewhere(t *testing.T) { // 70
	object := deletedAlive(true)
	unknown := []teardown.Item{{Kind: teardown.Volume, Object: teardown.Object{Kind: "PersistentVolumeClaim", UID: "a"},
		Plan: teardown.PlanDelete, Fate: teardown.Unknown}}
	for name, tc := range map[string]struct {
		cluster types.UID
		term    leads
		action  teardown.Action
		fails   bool
	}{
		"another cluster": {"other", true, teardown.Wait, true},
		"not leading":     {clusterID, false, teardown.Wait, false},
		"the end":         {clusterID, true, teardown.End, false},
	} {
		r := newTestRunner(t, object, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: tc.cluster}})
		s := newSession(r, tc.term, object, time.Now())
		s.record = recording{saved: map[string]int{}, planned: true, next: 1}
		decision := teardown.Decision{Phase: teardown.Stopped, Action: tc.action}
		if err := s.saveOutcomes(t.Context(), decision, view{listed: true, items: unknown}); (err != nil) != tc.fails {
			t.Errorf("%s: %v", name, err)
		}
		if maps, err := r.recordMaps(t.Context()); err != nil || len(maps) != 0 {
			t.Errorf("%s: %d ConfigMaps are written, %v", name, len(maps), err)
		}
	}
}
