package barrier_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/exeunt-io/exeunt/pkg/garbage/barrier"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

const limit = 10 * time.Second

var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestNames(t *testing.T) {
	enumtest.ExpectNames(t, Probe, Check)
	enumtest.ExpectNames(t, Running, PassedWithout)
}

// newRun returns a sealed run of the kinds.
func newRun(kinds ...string) *Run[string] {
	r := Begin[string](limit)
	for _, kind := range kinds {
		r.Add(kind)
		r.Vouch(kind)
	}
	r.Seal(true)
	return r
}

func expectRequests(t *testing.T, r *Run[string], at time.Duration, want map[string]Request) {
	t.Helper()
	if got, _ := r.Next(begun.Add(at)); !maps.Equal(got, want) {
		t.Errorf("requests after %v: %v, want %v", at, got, want)
	}
}

func expectResult(t *testing.T, r *Run[string], at time.Duration, want Result, without ...string) {
	t.Helper()
	got, unseen := r.Result(begun.Add(at))
	slices.Sort(unseen)
	if got != want || !slices.Equal(unseen, without) {
		t.Errorf("result after %v: %v without %v, want %v without %v", at, got, unseen, want, without)
	}
}

func TestEveryKindIsAwaited(t *testing.T) {
	r := newRun("a", "b")
	expectRequests(t, r, 0, map[string]Request{"a": Probe, "b": Probe})
	expectRequests(t, r, 0, map[string]Request{})
	r.Probed("a", "7", "7", begun)
	expectResult(t, r, 0, Running)
	r.Probed("b", "8", "7", begun)
	expectResult(t, r, 0, Running)
	r.Reached("b", "8")
	expectResult(t, r, 0, Passed)
}

func TestWatchBeforeTheProbeCountsNot(t *testing.T) {
	r := newRun("a")
	r.Reached("a", "99")
	expectResult(t, r, 0, Running)
	r.Next(begun)
	r.Reached("a", "99")
	expectResult(t, r, 0, Running)
}

func TestQuietKindIsListed(t *testing.T) {
	r := newRun("a")
	r.Next(begun)
	r.Probed("a", "8", "7", begun)
	expectRequests(t, r, FollowTime-1, map[string]Request{})
	expectRequests(t, r, FollowTime, map[string]Request{"a": List})
	r.Seen("a")
	expectResult(t, r, FollowTime, Passed)
}

func TestVersionsThatAreNoIntegersAreListed(t *testing.T) {
	r := newRun("a")
	r.Next(begun)
	r.Probed("a", "x", "x", begun)
	expectResult(t, r, 0, Running)
	expectRequests(t, r, 0, map[string]Request{"a": List})
}

func TestVersionsOfOtherKindsDoNotCount(t *testing.T) {
	r := newRun("a", "b")
	r.Next(begun)
	r.Probed("a", "8", "7", begun)
	r.Probed("b", "1", "1", begun)
	r.Reached("b", "99")
	expectResult(t, r, 0, Running)
}

// answer has the API server answer a check that is due.
func answer(t *testing.T, r *Run[string], at time.Duration, answered bool) {
	t.Helper()
	requests, _ := r.Next(begun.Add(at))
	for _, request := range requests {
		if request == Check {
			r.Checked(answered, begun.Add(at))
			return
		}
	}
	t.Errorf("no check after %v", at)
}

func TestFailingKindDelaysUntilTheLimit(t *testing.T) {
	r := newRun("a", "b")
	r.Next(begun)
	r.Failed("a", begun)
	r.Probed("b", "8", "8", begun)
	answer(t, r, 0, true)
	expectRequests(t, r, RetryTime-1, map[string]Request{})
	expectResult(t, r, limit-1, Running)
	expectResult(t, r, limit, Running)
	answer(t, r, limit, true)
	expectResult(t, r, limit, PassedWithout, "a")
	r.Probed("a", "8", "8", begun)
	expectResult(t, r, limit, Passed)
}

func TestFailingKindDelaysOneRunOnly(t *testing.T) {
	r := newRun("a", "b")
	r.Excuse("a")
	r.Next(begun)
	r.Probed("b", "8", "8", begun)
	expectResult(t, r, 0, Running)
	r.Failed("a", begun)
	expectResult(t, r, 0, Running)
	answer(t, r, 0, true)
	expectResult(t, r, 0, PassedWithout, "a")
	r.Next(begun.Add(RetryTime))
	r.Probed("a", "8", "8", begun)
	expectResult(t, r, RetryTime, Passed)
}

// An API server that goes away in the middle of a run has read some kinds.
func TestFailedCheckBeginsTheLimitAnew(t *testing.T) {
	r := newRun("a", "b")
	r.Excuse("a")
	r.Next(begun)
	r.Seen("b")
	r.Failed("a", begun)
	answer(t, r, 0, false)
	expectRequests(t, r, RetryTime-1, map[string]Request{})
	expectResult(t, r, limit, Running)
	answer(t, r, RetryTime, false)
	answer(t, r, 9*time.Second, true)
	if r.IsComplete() {
		t.Error("kinds may be new")
	}
	r.Seal(true)
	expectRequests(t, r, 9*time.Second, map[string]Request{"a": Probe, "b": Probe}) // etcd may have been restored
	r.Seen("b")
	r.Failed("a", begun.Add(9*time.Second))
	answer(t, r, 10*time.Second, true)
	expectResult(t, r, 19*time.Second, Running)
	answer(t, r, 20*time.Second, true)
	expectResult(t, r, 20*time.Second, PassedWithout, "a")
}

// The API server comes back and goes away again at once.
func TestRunBeginsAnewTwice(t *testing.T) {
	r := newRun("a", "b")
	r.Next(begun)
	r.Seen("b")
	r.Failed("a", begun)
	answer(t, r, 0, false)
	answer(t, r, RetryTime, true)
	r.Seal(true)
	expectRequests(t, r, RetryTime, map[string]Request{"a": Probe, "b": Probe})
	r.Failed("a", begun.Add(RetryTime))
	r.Failed("b", begun.Add(RetryTime))
	expectRequests(t, r, 2*RetryTime, map[string]Request{"a": Probe, "b": Probe})
	expectResult(t, r, 2*limit, Running)
	r.Seen("a")
	r.Seen("b")
	expectResult(t, r, 2*limit, Passed)
}

// The kind is not read again before the API server is known to answer: it would fail again for the same reason.
func TestFailedKindIsReadAgainAfterCheck(t *testing.T) {
	r := newRun("a", "b")
	r.Next(begun)
	r.Seen("b")
	r.Failed("a", begun)
	expectRequests(t, r, 0, map[string]Request{"b": Check})
	expectRequests(t, r, RetryTime, map[string]Request{})
	r.Failed("a", begun.Add(RetryTime)) // after the check began
	r.Checked(true, begun.Add(RetryTime))
	expectRequests(t, r, RetryTime, map[string]Request{"b": Check})
	r.Checked(true, begun.Add(RetryTime))
	expectRequests(t, r, 2*RetryTime, map[string]Request{"a": Probe})
}

// Another API server may answer while that of Kubernetes, or its storage, is away.
func TestAnswerOfAnotherServerIsNoCheck(t *testing.T) {
	r := Begin[string](limit)
	for _, kind := range []string{"own", "removed", "aggregated"} {
		r.Add(kind)
	}
	r.Vouch("own")
	r.Vouch("removed")
	r.Vouch("unknown")
	r.Seal(true)
	r.Next(begun)
	r.Seen("aggregated")
	r.Failed("own", begun)
	r.Failed("removed", begun)
	r.Remove("removed")
	expectRequests(t, r, 2*limit, map[string]Request{"own": Probe})
	expectResult(t, r, 2*limit, Running)
	r.Seen("own")
	expectResult(t, r, 2*limit, Passed)
	r.Remove("own")
	r.Checked(false, begun.Add(2*limit))
}

// A kind may have ended since it was read; another one proves that the API server answers.
func TestNextCheckReadsAnotherKind(t *testing.T) {
	r := newRun("a", "b", "failing")
	r.Next(begun)
	r.Seen("a")
	r.Seen("b")
	r.Failed("failing", begun)
	for i, kind := range []string{"a", "b", "a"} {
		at := time.Duration(i) * RetryTime
		expectRequests(t, r, at, map[string]Request{kind: Check})
		r.Checked(false, begun.Add(at))
	}
}

func TestUndiscoveredKindsAwaitCheck(t *testing.T) {
	r := Begin[string](limit)
	r.Add("a")
	r.Vouch("a")
	r.Next(begun)
	r.Seen("a")
	r.Next(begun)
	r.Undiscovered()
	r.Seal(false)
	expectResult(t, r, 0, Running)
	answer(t, r, 0, true)
	expectResult(t, r, 0, PassedWithout)
}

func TestSlowKindIsNotFailing(t *testing.T) {
	r := newRun("a")
	r.Next(begun)
	expectResult(t, r, 2*limit, Running)
}

func TestBusyServerIsNoFailingKind(t *testing.T) {
	r := newRun("a", "b")
	r.Next(begun)
	r.Seen("b")
	r.Postponed("b", begun.Add(2*limit))
	r.Postponed("unknown", begun.Add(limit))
	r.Failed("a", begun)
	r.Postponed("a", begun.Add(2*limit))
	answer(t, r, 0, true)
	answer(t, r, limit, true)
	expectRequests(t, r, 2*limit-1, map[string]Request{})
	expectResult(t, r, 2*limit, Running)
	expectRequests(t, r, 2*limit, map[string]Request{"a": Probe})
	r.Seen("a")
	expectResult(t, r, 2*limit, Passed)
}

func TestKindsAreAddedUntilSealed(t *testing.T) {
	r := Begin[string](limit)
	r.Add("definitions")
	r.Next(begun)
	r.Probed("definitions", "1", "1", begun)
	expectResult(t, r, 0, Running)
	if !r.Saw("definitions") {
		t.Error("definitions not seen")
	}
	r.Add("new")
	r.Seal(true)
	expectResult(t, r, 0, Running)
	r.Remove("new")
	expectResult(t, r, 0, Passed)
}

func TestRunPassesWithoutKindsThatNobodyKnows(t *testing.T) {
	r := Begin[string](limit)
	r.Add("a")
	r.Vouch("a")
	r.Next(begun)
	r.Seen("a")
	r.Seal(false)
	r.Next(begun)
	expectResult(t, r, 0, PassedWithout)
	r.Seal(true)
	expectResult(t, r, 0, Passed)
}

func TestKindWhoseLastReadFailed(t *testing.T) {
	r := newRun("a")
	r.Next(begun)
	r.Failed("a", begun)
	failed := r.HasFailed("a")
	r.Next(begun.Add(RetryTime))
	r.Seen("a")
	if !failed || r.HasFailed("a") || r.HasFailed("unknown") {
		t.Errorf("failed: %v, then: %v, unknown: %v", failed, r.HasFailed("a"), r.HasFailed("unknown"))
	}
}

func TestKindWhoseWatchIsReplacedIsReadAnew(t *testing.T) {
	r := newRun("a v1", "b")
	r.Next(begun)
	r.Seen("a v1")
	r.Seen("b")
	r.Replace("a v1", "a v2")
	r.Replace("unknown v1", "unknown v2")
	expectResult(t, r, 0, Running)
	expectRequests(t, r, 0, map[string]Request{"a v2": Probe})
	r.Seen("a v2")
	expectResult(t, r, 0, Passed)
}

// BenchmarkRun reads 500 kinds, one after the other, as after each answer of the API server.
func BenchmarkRun(b *testing.B) {
	b.ReportAllocs()
	kinds := make([]string, 500)
	for i := range kinds {
		kinds[i] = strconv.Itoa(i)
	}
	for b.Loop() {
		r := newRun(kinds...)
		for _, kind := range kinds {
			r.Result(begun)
			r.Next(begun)
			r.Seen(kind)
		}
	}
}

// Kinds whose pages cannot be read, though their first objects can, need not fail at the same moment.
func TestProbeDoesNotHideThatListsFail(t *testing.T) {
	r := newRun("a", "b", "read")
	r.Seen("read")
	list := func(kind string, at time.Duration) {
		r.Next(begun.Add(at - FollowTime))
		r.Probed(kind, "9", "1", begun.Add(at-FollowTime))
		r.Next(begun.Add(at))
	}
	list("a", time.Second)
	list("b", time.Second)
	r.Failed("a", begun.Add(12*time.Second))
	answer(t, r, 12*time.Second, true)
	list("a", 13*time.Second)
	expectResult(t, r, 13*time.Second, Running)
	r.Failed("b", begun.Add(14*time.Second))
	answer(t, r, 14*time.Second, true)
	expectResult(t, r, 14*time.Second, PassedWithout, "a", "b")
	r.Seen("a")
	expectResult(t, r, 14*time.Second, PassedWithout, "b")
}

// A read of a kind that the former run passed without may hang: it holds up no longer than the limit.
func TestHangingReadOfExcusedKindEndsWithTheLimit(t *testing.T) {
	for kind, want := range map[string]Result{"excused": PassedWithout, "other": Running} {
		r := newRun(kind, "read")
		r.Seen("read")
		r.Excuse("excused")
		r.Next(begun)
		expectResult(t, r, limit-1, Running)
		answer(t, r, limit, true)
		if got, _ := r.Result(begun.Add(limit)); got != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

// An API server that is away fails every read, which says nothing about kinds.
func TestBarrierThatReadNothingDoesNotPass(t *testing.T) {
	r := newRun("a", "b")
	r.Next(begun)
	r.Failed("a", begun.Add(limit))
	r.Failed("b", begun.Add(limit))
	expectResult(t, r, limit, Running)
	r.Seen("a")
	answer(t, r, limit, true)
	expectResult(t, r, limit, Running) // the API server has been answering since now
	expectRequests(t, r, limit+RetryTime, map[string]Request{"b": Probe})
	r.Failed("b", begun.Add(2*limit))
	answer(t, r, 2*limit, true)
	expectResult(t, r, 2*limit, PassedWithout, "b")
}
