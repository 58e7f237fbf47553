package provisioning

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// A failure of the last request says nothing about an earlier one, whose volume the driver still created.
func TestFailedRequestDoesNotEndAnUnansweredOne(t *testing.T) {
	for _, failures := range []int{1, 2, 3} {
		f := newFlow(t)
		f.injectFault(codes.DeadlineExceeded, true, 1)
		f.reconcile(true)
		f.Timeouts.RepeatedFailure = time.Nanosecond
		f.setClassParameter("pool", "unknown")
		f.injectFault(codes.OutOfRange, false, failures)
		f.reconcile(true)
		f.deleteClaim()
		for range failures + 2 {
			_ = f.Reconcile(t.Context(), flowClaim)
		}
		recorded, err := f.client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
		f.must(err)
		if kept := len(f.entries(journal.KindActive)); len(f.mock.Volumes()) > len(recorded.Items)+kept {
			t.Errorf("%d failures: %d volumes in the driver, %d recorded, %d entries", failures, len(f.mock.Volumes()),
				len(recorded.Items), kept)
		}
	}
}

// Each request fails, and fails again long after that: then there is no volume.
func TestEveryRequestFailsTwiceBeforeTheEntryEnds(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, false, 1)
	f.reconcile(true)
	f.Timeouts.RepeatedFailure = time.Nanosecond
	f.setClassParameter("pool", "unknown")
	f.injectFault(codes.OutOfRange, false, 9)
	f.reconcile(true)
	f.deleteClaim()
	for calls := 3; calls <= 4; calls++ {
		f.reconcileDeleted(false)
		f.expect(0, 0, calls, 1)
	}
	f.reconcileDeleted(false)
	f.expect(0, 0, 5, 0)
}

// directoryPlan returns a plan with the request for the directory.
func directoryPlan(name string) *plan {
	return &plan{request: directory{name}, volume: &v1.PersistentVolume{}}
}

// afterMismatch returns the record of a claim whose last request did not match the volume
// of the superseded one.
func afterMismatch(creation provision.Creation) claimRecord {
	superseded, _ := directory{"old"}.Stored()
	last := directoryPlan("new")
	return claimRecord{request: requestFacts{creation: creation, plan: last, answers: answerFacts{alternatives: 1}},
		entry: entryFacts{stored: last, superseded: []journal.Request{superseded}}}
}

func TestStoredRequestIsSupersededOneIfAllowed(t *testing.T) {
	for name, tc := range map[string]struct {
		state       provision.State
		alternative bool
	}{
		"no call open":                             {provision.State{Creation: provision.Doubtful, Want: provision.Unwanted}, true},
		"call open":                                {provision.State{Creation: provision.Requested, Want: provision.Unwanted}, false},
		"unwanted call open for long":              {provision.State{Creation: provision.Requested, Want: provision.Unwanted, LongRequested: true}, true},
		"wanted call open for long":                {provision.State{Creation: provision.Requested, Want: provision.Wanted, LongRequested: true}, false},
		"first failure after an unanswered call":   {provision.State{Creation: provision.FailedOnce, Want: provision.Unwanted}, true},
		"doubtful request of a claim without node": {provision.State{Creation: provision.Doubtful, Want: provision.Unserved}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newDirectoryFlow(t)
			o := &observation{claim: f.syncClaim(), record: afterMismatch(tc.state.Creation), cause: provision.RequestFailed,
				err: errors.New("class gone")}
			after := f.useStored(o, tc.state)
			if after.plan.alternative != tc.alternative || after.cause != provision.NoCause || after.err != nil {
				t.Errorf("plan %+v, cause %v, error %v; want an alternative: %v", after.plan, after.cause, after.err,
					tc.alternative)
			}
		})
	}
}

func TestNewRequestIsSupersededOneIfRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		creation    provision.Creation
		built       string
		alternative bool
	}{
		"doubtful request built again":   {provision.Doubtful, "new", true},
		"other request than the last":    {provision.Doubtful, "changed", false},
		"unanswered request built again": {provision.Requested, "new", false},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newDirectoryFlow(t)
			if p := f.orOlderPlan(&observation{record: afterMismatch(tc.creation)},
				directoryPlan(tc.built)); p.alternative != tc.alternative {
				t.Errorf("plan %+v, want an alternative: %v", p, tc.alternative)
			}
		})
	}
}
