package drain

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// of is the guard of a healthy pod with these budgets.
func of(budgets ...string) guard { return guard{budgets: budgets, healthy: true} }

// takeAll returns the pods that are sent now.
func takeAll(q *queue, now time.Time) []types.UID {
	var all []types.UID
	for r := q.take(now); r != nil; r = q.take(now) {
		all = append(all, r.id)
	}
	return all
}

func expectTaken(t *testing.T, q *queue, now time.Time, want ...types.UID) {
	t.Helper()
	if got := takeAll(q, now); !slices.Equal(got, want) {
		t.Errorf("at %v s %v are evicted, want %v", now.Sub(start).Seconds(), got, want)
	}
}

func TestEarliestDeadlineIsEvictedFirst(t *testing.T) {
	q := newQueue(10)
	q.set("never", time.Time{}, of(), at(0))
	q.set("late", at(900), of(), at(0))
	q.set("early", at(300), of(), at(0))
	q.set("early too", at(300), of(), at(0))
	expectTaken(t, q, at(0), "early", "early too", "late", "never")
}

func TestOneEvictionOfBudgetIsInFlight(t *testing.T) {
	q := newQueue(10)
	q.setBudget("web", 5, false, at(0))
	q.setBudget("db", 5, false, at(0))
	q.set("web-2", at(2), of("web"), at(0))
	q.set("web-1", at(1), of("web"), at(0))
	q.set("db-1", at(3), of("db"), at(0))
	q.set("free", at(4), of(), at(0))
	expectTaken(t, q, at(0), "web-1", "db-1", "free")
	if _, gate, _ := q.status("web-2", of("web"), at(0)); gate != pod.ByBudget {
		t.Errorf("the second pod is kept %v", gate)
	}
	q.answered("web-1", result{}, at(1))
	expectTaken(t, q, at(1), "web-2")
}

func TestFullBudgetIsNotAsked(t *testing.T) {
	q := newQueue(10)
	q.setBudget("web", 1, false, at(0))
	q.set("web-1", at(100), of("web"), at(0))
	q.set("web-2", at(200), of("web"), at(0))
	expectTaken(t, q, at(0), "web-1")
	q.answered("web-1", result{}, at(0))
	expectTaken(t, q, at(0))
	if answer, _, _ := q.status("web-2", of("web"), at(0)); answer != pod.Blocked {
		t.Errorf("the answer is %v", answer)
	}
	q.setBudget("web", 0, false, at(1)) // the watch shows the eviction
	expectTaken(t, q, at(1))
	q.setBudget("web", 1, false, at(2))
	expectTaken(t, q, at(2), "web-2")
}

// The watch may show room before an older refusal arrives.
func TestRoomShownAfterSendingSurvivesRefusal(t *testing.T) {
	q := newQueue(10)
	q.setBudget("web", 1, false, at(0))
	q.set("web-1", at(100), of("web"), at(0))
	expectTaken(t, q, at(1), "web-1")
	q.setBudget("web", 1, false, at(2))
	q.answered("web-1", result{kind: blocked}, at(3))
	expectTaken(t, q, at(3), "web-1")
	q.answered("web-1", result{kind: blocked}, at(4))
	expectTaken(t, q, at(5)) // nothing has changed since
}

func TestFullBudgetIsAskedEach30Seconds(t *testing.T) {
	q := newQueue(10)
	q.setBudget("web", 0, false, at(0))
	q.set("web-1", at(100), of("web"), at(0))
	q.set("web-2", at(200), of("web"), at(10))
	if next := q.next(); !next.Equal(at(30)) {
		t.Errorf("the next attempt is at %v", next)
	}
	expectTaken(t, q, at(29))
	expectTaken(t, q, at(30), "web-1")
	q.answered("web-1", result{kind: blocked}, at(31))
	expectTaken(t, q, at(60))
	expectTaken(t, q, at(61), "web-1")
	q.answered("web-1", result{kind: blocked, hint: 10 * time.Second}, at(61))
	expectTaken(t, q, at(70))
	expectTaken(t, q, at(71), "web-1")
}

func TestFirstPodOfFullBudgetWaits(t *testing.T) {
	q := newQueue(10)
	q.setBudget("web", 0, false, at(0))
	q.set("web-1", at(1000), of("web"), at(500))
	expectTaken(t, q, at(529))
	expectTaken(t, q, at(530), "web-1")
}

func TestRefusedPodDelaysNoOther(t *testing.T) {
	q := newQueue(10)
	q.setBudget("web", 5, false, at(0))
	q.set("web-1", at(100), of("web"), at(0))
	q.set("web-2", at(200), of("web"), at(0))
	expectTaken(t, q, at(0), "web-1")
	q.answered("web-1", result{kind: refused}, at(1))
	if answer, _, _ := q.status("web-1", of("web"), at(1)); answer != pod.Refused {
		t.Errorf("the answer is %v", answer)
	}
	expectTaken(t, q, at(1), "web-2")
	q.answered("web-2", result{}, at(2))
	if next := q.next(); !next.Equal(at(31)) {
		t.Errorf("the next attempt is at %v", next)
	}
	expectTaken(t, q, at(31), "web-1")
}

func TestRefusedPodsTakeNoSlotOfOthers(t *testing.T) {
	q := newQueue(1)
	q.set("hung", at(100), of(), at(0))
	expectTaken(t, q, at(0), "hung")
	q.set("other", at(200), of(), at(0))
	q.set("another", at(300), of(), at(0))
	q.answered("hung", result{kind: refused}, at(10))
	expectTaken(t, q, at(50), "other")
	q.answered("other", result{}, at(50))
	expectTaken(t, q, at(50), "another")
	q.answered("another", result{}, at(50))
	expectTaken(t, q, at(50), "hung")
}

func TestRefusedPodIsTriedAfterChangeOfBudget(t *testing.T) {
	q := newQueue(10)
	q.setBudget("web", 5, false, at(0))
	q.set("web-1", at(100), of("web"), at(0))
	expectTaken(t, q, at(0), "web-1")
	q.answered("web-1", result{kind: refused}, at(0))
	q.setBudget("web", 4, false, at(2))
	expectTaken(t, q, at(4))
	expectTaken(t, q, at(5), "web-1")
}

func TestBlockedPodWithoutKnownBudget(t *testing.T) {
	q := newQueue(10)
	q.set("web-1", at(100), of(), at(0))
	expectTaken(t, q, at(0), "web-1")
	q.answered("web-1", result{kind: blocked}, at(0))
	if answer, _, _ := q.status("web-1", of(), at(0)); answer != pod.Blocked {
		t.Errorf("the answer is %v", answer)
	}
	expectTaken(t, q, at(4))
	expectTaken(t, q, at(5), "web-1")
	q.answered("web-1", result{kind: blocked}, at(5))
	q.setBudget("web", 1, false, at(6)) // budgets are known at last
	q.set("web-1", at(100), of("web"), at(6))
	expectTaken(t, q, at(6), "web-1")
}

func TestUnhealthyPodPassesFullBudget(t *testing.T) {
	q := newQueue(10)
	sick := guard{budgets: []string{"web"}}
	q.setBudget("web", 0, true, at(0))
	q.set("sick", at(200), sick, at(0))
	q.set("well", at(100), of("web"), at(0))
	expectTaken(t, q, at(0), "sick")
	q.answered("sick", result{}, at(0))
	expectTaken(t, q, at(0))
	q.setBudget("web", 0, false, at(1))
	q.set("sick-2", at(200), sick, at(1))
	expectTaken(t, q, at(1))
	q.set("sick-2", at(200), of("web"), at(1)) // Ready by now
	q.setBudget("web", 1, false, at(2))
	expectTaken(t, q, at(2), "well")
}

func TestPauseStopsAllEvictions(t *testing.T) {
	q := newQueue(10)
	q.set("a", at(100), of(), at(0))
	q.set("b", at(100), of(), at(0))
	r := q.take(at(0))
	q.answered(r.id, result{kind: unanswered}, at(0))
	q.pause(at(3))
	expectTaken(t, q, at(2))
	if answer, gate, _ := q.status("a", of(), at(2)); gate != pod.ByPause || answer != pod.Untried {
		t.Errorf("%v, %v", answer, gate)
	}
	if next := q.next(); !next.Equal(at(3)) {
		t.Errorf("the next attempt is at %v", next)
	}
	expectTaken(t, q, at(3), "a", "b")
}

func TestUnansweredEvictionTakesNoRoom(t *testing.T) {
	q := newQueue(10)
	q.setBudget("web", 1, false, at(0))
	q.set("a", at(100), of("web"), at(0))
	expectTaken(t, q, at(0), "a")
	q.answered("a", result{kind: unanswered}, at(0))
	expectTaken(t, q, at(0), "a")
}

func TestDroppedPodIsNotEvictedAgain(t *testing.T) {
	q := newQueue(10)
	q.setBudget("web", 1, false, at(0))
	for _, id := range []types.UID{"a", "b", "c"} {
		q.set(id, at(100), of("web"), at(0))
	}
	expectTaken(t, q, at(0), "a")
	q.drop("a")
	q.drop("b")
	q.answered("a", result{kind: refused}, at(1))
	expectTaken(t, q, at(1), "c")
	q.set("a", at(100), of("web"), at(1))
	q.answered("c", result{kind: unanswered}, at(1))
	expectTaken(t, q, at(1), "c") // the first that came
}

func TestPodInFlightIsNotSentTwice(t *testing.T) {
	q := newQueue(10)
	q.set("a", at(100), of(), at(0))
	expectTaken(t, q, at(0), "a")
	q.drop("a")
	q.set("a", at(50), of(), at(1))
	expectTaken(t, q, at(1))
	if _, _, since := q.status("a", of(), at(1)); !since.Equal(at(0)) {
		t.Errorf("in flight since %v", since)
	}
	q.answered("a", result{kind: unanswered}, at(2))
	expectTaken(t, q, at(2), "a")
}

func TestSlotsBoundEvictionsInFlight(t *testing.T) {
	q := newQueue(2)
	for i := range 3 {
		q.set(types.UID(fmt.Sprint(i)), at(100), of(), at(0))
	}
	expectTaken(t, q, at(0), "0", "1")
	if next := q.next(); !next.IsZero() {
		t.Errorf("a full queue wakes up at %v", next)
	}
	q.answered("1", result{}, at(0))
	expectTaken(t, q, at(0), "2")
}

// In every order of events: one eviction of a budget is in flight, nothing is lost, and what can be sent has a time.
func TestQueueHoldsInEveryOrder(t *testing.T) {
	for seed := range 300 {
		random := rand.New(rand.NewSource(int64(seed)))
		q := newQueue(4)
		names := []string{"x", "y"}
		q.setBudget("x", 1, false, at(0))
		q.setBudget("y", 0, false, at(0))
		guards := []guard{of(), of("x"), of("y"), of("x", "y"), {budgets: names[:1]}}
		now := 0
		for step := range 200 {
			id := types.UID(fmt.Sprint(random.Intn(12)))
			switch random.Intn(8) {
			case 0, 1:
				q.set(id, at(100+random.Intn(5)), guards[random.Intn(len(guards))], at(now))
			case 2:
				q.drop(id)
			case 3:
				q.setBudget(names[random.Intn(2)], random.Intn(3), random.Intn(2) == 0, at(now))
			case 4:
				now += random.Intn(20)
			case 5:
				q.pause(at(now + random.Intn(3)))
			case 6:
				if q.flights[id] != nil {
					q.answered(id, result{kind: kind(random.Intn(4))}, at(now))
				}
			}
			takeAll(q, at(now))
			expectSound(t, q, at(now), fmt.Sprintf("seed %d, step %d", seed, step))
		}
	}
}

func expectSound(t *testing.T, q *queue, now time.Time, when string) {
	t.Helper()
	used := map[string]int{}
	for _, r := range q.flights {
		for _, name := range r.guard.budgets {
			used[name]++
		}
		if r.index >= 0 {
			t.Fatalf("%s: %s is in flight and in a heap", when, r.id)
		}
	}
	for name, count := range used {
		if count > 1 && q.budgets[name] != nil {
			t.Fatalf("%s: %d evictions of %s are in flight", when, count, name)
		}
	}
	for id, r := range q.waiting {
		if r.index < 0 && q.flights[id] == nil {
			t.Fatalf("%s: %s is lost", when, id)
		}
	}
	if next := q.next(); !next.IsZero() && !next.After(now) {
		t.Fatalf("%s: an eviction could be sent since %v", when, next)
	}
}
