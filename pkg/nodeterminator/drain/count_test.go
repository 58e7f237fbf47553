package drain

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

func (w *world) expectCounts(want termination.Counts) {
	w.t.Helper()
	if got := w.result().Counts; got != want {
		w.t.Errorf("counts: %+v, want %+v", got, want)
	}
}

func finished(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }

func mirror(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "hash"} }

// protected keeps the pod from being evicted.
func protected(p *v1.Pod) { p.Annotations = map[string]string{pod.DoNotDisruptAnnotation: "true"} }

func terminating(reason string, seconds int64) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: p.CreationTimestamp.AddDate(1, 0, 0)}, &seconds
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget,
			Status: v1.ConditionTrue, Reason: reason})
	}
}

// Promise 6: each pod is counted once, wherever it is.
func TestEachPodIsCountedOnce(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		w.pod("evicted", 30)
		w.pod("protected", 30, protected)
		w.pod("done", 30, finished)
		w.pod("static", 30, mirror)
		w.expectCounts(termination.Counts{Left: 2, Finished: 1, WithNode: 1})
		w.end("evicted")
		w.expectCounts(termination.Counts{Evicted: 1, Left: 1, Finished: 1, WithNode: 1})
		w.end("protected") // by its user
		w.end("done")
		w.end("static")
		w.expectCounts(termination.Counts{Evicted: 1, Others: 1, Finished: 1, WithNode: 1})
		w.pod("cut", 2000)
		w.end("cut")
		w.expectCounts(termination.Counts{Evicted: 1, CutShort: 1, Others: 1, Finished: 1, WithNode: 1})
	})
}

func TestPodsBeforeFirstActionAreNotCounted(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		w.pod("before", 30, protected)
		w.pod("after", 30, protected)
		w.at(1)
		w.end("before")
		w.at(2)
		w.setView(func(v *View) { v.Begun = w.begun.Add(2e9) })
		w.expectCounts(termination.Counts{Left: 1})
		w.end("after")
		w.expectCounts(termination.Counts{Others: 1})
	}, func(w *world) { w.view.Begun = time.Time{} })
}

// endBeforeAnswers has each request end its pod, and answered once the channel is closed.
func (w *world) endBeforeAnswers() (hold chan struct{}) {
	hold = make(chan struct{})
	w.script(func(r sentRequest) *answer {
		w.end(r.name)
		<-hold
		return &answer{code: 201, status: &metav1.Status{Status: metav1.StatusSuccess}}
	})
	return hold
}

// The end of a pod may be seen before the answer to the request that ended it.
func TestEndBeforeAnswerIsOurs(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		hold := w.endBeforeAnswers()
		w.pod("app", 30)
		w.at(10)
		w.expectCounts(termination.Counts{Left: 1}) // the next leader must know of it
		w.expectSettled(false)
		close(hold)
		w.at(11)
		w.expectCounts(termination.Counts{Evicted: 1})
		w.expectSettled(true)
	})
}

// A machine that is off, and a node at E, wait for no answer: the last report must not name a pod that is gone.
func TestLastResultHasNoPodThatIsGone(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		hold := w.endBeforeAnswers()
		w.pod("app", 30)
		w.pod("other", 30, protected)
		w.at(10)
		last := w.node.Last()
		if want := (termination.Counts{Unknown: 1, Left: 1}); last.Counts != want || len(last.Left) != 1 {
			t.Errorf("%+v with %+v, want %+v", last.Counts, last.Left, want)
		}
		close(hold)
		w.at(11)
	})
}

func TestLastResultOfUncountedPodsIsEmpty(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		w.pod("app", 30)
		w.at(1)
		if last := w.node.Last(); last.Synced {
			t.Errorf("%+v", last)
		}
	}, func(w *world) { w.view.Begun = time.Time{} })
}

func (w *world) expectSettled(want bool) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.Settled != want {
		w.t.Errorf("settled: %t, want %t", w.last.Settled, want)
	}
}

func TestLostAnswerShowsInCondition(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		w.script(func(r sentRequest) *answer {
			w.carryOut(r)
			return &answer{}
		})
		w.pod("app", 30)
		w.at(1)
		w.end("app")
		w.expectCounts(termination.Counts{Evicted: 1})
	})
}

// lose has requests with the method carried out, and their answers lost. Budgets are full.
func (w *world) lose(method string, lost func() *answer) {
	w.script(func(r sentRequest) *answer {
		switch {
		case r.method == "POST" && method != "POST":
			return fullBudget("web")
		case r.method != method:
			return nil
		}
		w.carryOut(r)
		return lost()
	})
}

// A pod that was deleted against its budget, or cut short, is named although the answer to the request was lost.
func TestLostAnswerHidesNoPod(t *testing.T) {
	for name, lost := range map[string]func() *answer{
		"connection lost":  func() *answer { return &answer{} },
		"server too late":  func() *answer { return refusal(504, "the server was unable to return a response in time") },
		"server has broke": func() *answer { return refusal(500, "etcd has no leader") },
	} {
		for request, tc := range map[string]struct {
			method string
			pod    func(w *world)
			until  float64
			want   termination.CutShort
			counts termination.Counts
		}{
			"deletion": {"DELETE", func(w *world) { full(w); w.pod("app", 20) }, 81,
				termination.CutShort{Reason: string(pod.BudgetBlocks), Budget: "default/web", Given: 20},
				termination.Counts{Deleted: 1}},
			"last eviction": {"POST", func(w *world) { w.pod("app", 20, protected) }, 81,
				termination.CutShort{Reason: string(pod.DoNotDisrupt), Given: 20}, termination.Counts{Evicted: 1}},
			"shortening": {"DELETE", func(w *world) { w.pod("app", 600, deletedByOthers(600)) }, 96,
				termination.CutShort{Reason: string(pod.TerminatingBeyond), Given: 96, Missing: 504},
				termination.Counts{CutShort: 1}},
		} {
			t.Run(request+", "+name, func(t *testing.T) {
				inWorld(t, 100, func(w *world) {
					w.lose(tc.method, func() *answer {
						<-time.After(time.Millisecond) // the watch shows first what the request did
						return lost()
					})
					tc.pod(w)
					w.at(tc.until)
					tc.want.Pod, tc.want.UID = "default/app", "uid-of-app"
					if cut := w.result().CutShort; len(cut) != 1 || cut[0] != tc.want {
						t.Errorf("cut short: %+v, want %+v", cut, tc.want)
					}
					w.expectEvent("Disrupted")
					w.end("app")
					w.expectCounts(tc.counts)
				})
			})
		}
	}
}

// The machine is off before the end of the grace period. What was cut before counts as removed, too.
func TestLostAnswerOfRemovalCountsAsRemoved(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(w *world)
		want    termination.CutShort
	}{
		"deleted by others": {func(w *world) { w.pod("app", 600, deletedByOthers(600)) },
			termination.CutShort{Reason: string(pod.MachineOff), Given: 10, Missing: 590}},
		"cut before": {func(w *world) { full(w); w.pod("app", 600) },
			termination.CutShort{Reason: string(pod.BudgetBlocks), Budget: "default/web", Given: 10, Missing: 590}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 100, func(w *world) {
				tc.prepare(w)
				w.at(10)
				w.lose("DELETE", func() *answer { return &answer{} })
				w.setView(func(v *View) { v.Proven = true })
				tc.want.Pod, tc.want.UID = "default/app", "uid-of-app"
				if cut := w.result().CutShort; len(cut) != 1 || cut[0] != tc.want {
					t.Errorf("cut short: %+v, want %+v", cut, tc.want)
				}
				w.expectCounts(termination.Counts{Removed: 1})
			})
		})
	}
}

// reportOfLeader is what an earlier leader has counted.
func reportOfLeader() termination.Report {
	left := func(name string, reason pod.Reason) termination.Left {
		return termination.Left{Pod: "default/" + name, UID: "uid-of-" + name, Reason: string(reason)}
	}
	return termination.Report{
		Counts: termination.Counts{Evicted: 3, Deleted: 1, CutShort: 1, Finished: 2, WithNode: 1, Left: 4},
		Left: []termination.Left{left("static", pod.StaticPod), left("done", pod.ContainersFinished),
			left("lost", pod.Terminating), left("evicted", pod.Terminating), left("deleted", pod.Terminating),
			left("waits", pod.DoNotDisrupt)},
		CutShort: []termination.CutShort{{Pod: "default/old", UID: "uid-of-old", Missing: 5}},
	}
}

func TestNewLeaderGoesOnCounting(t *testing.T) {
	report := reportOfLeader()
	pods := func(w *world) {
		w.pod("static", 30, mirror)
		w.pod("done", 30, finished)
		w.pod("waits", 30, protected)
		w.pod("evicted", 30, terminating(byEvictionAPI, 30))
		w.pod("deleted", 30, terminating(disruptionReason, 10))
		w.pod("others", 30, terminating("DeletionByTaintManager", 30))
	}
	expectEnd := func(w *world) {
		w.expectCounts(termination.Counts{Evicted: 4, Deleted: 1, CutShort: 2, Finished: 2, WithNode: 1, Left: 1,
			Unknown: 1, Others: 1})
		cut := w.result().CutShort
		at := slices.IndexFunc(cut, func(one termination.CutShort) bool { return one.UID == "uid-of-deleted" })
		if len(cut) != 2 || at < 0 || cut[at].Missing != 20 {
			t.Errorf("cut short: %+v", cut)
		}
	}
	end := func(w *world) {
		w.end("evicted")
		w.end("deleted")
		w.end("others")
	}
	inWorld(t, 1000, func(w *world) {
		w.expectCounts(termination.Counts{Evicted: 3, Deleted: 1, CutShort: 1, Finished: 2, WithNode: 1, Left: 4, Unknown: 1})
		end(w)
		expectEnd(w)
	}, pods, func(w *world) { w.restore = &report })
	// The report could not be read for a while.
	inWorld(t, 1000, func(w *world) {
		w.expectCounts(termination.Counts{Finished: 1, WithNode: 1, Left: 4})
		end(w)
		w.expectCounts(termination.Counts{Evicted: 1, CutShort: 1, Others: 1, Finished: 1, WithNode: 1, Left: 1})
		before := w.result().Counts
		added, cut := w.node.Restore(report)
		w.setView(func(*View) {})
		expectEnd(w)
		if after := w.result(); before.Plus(added) != after.Counts || !slices.Equal(cut, after.CutShort) {
			t.Errorf("added %+v to %+v, cut short: %+v", added, before, cut)
		}
	}, pods, func(w *world) { w.restore = &termination.Report{} })
}

// A pod that would return is left, and goes with the node only if it is a DaemonSet's.
func TestNewLeaderCountsPodsThatWouldReturn(t *testing.T) {
	tolerant := func(p *v1.Pod) {
		p.CreationTimestamp = metav1.Time{Time: time.Now().Add(2 * time.Second)}
		p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	}
	yes, refused := true, false
	daemon := func(p *v1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: &yes}}
	}
	want := termination.Counts{Left: 1, WithNode: 1, Finished: 1}
	var report termination.Report
	pods := func(w *world) {
		w.pod("young", 30, tolerant)
		w.pod("agent", 30, tolerant, daemon)
	}
	inWorld(t, 100, func(w *world) {
		full(w)
		w.script(refusing("DELETE", func() *answer { refused = true; return refusal(403, "denied by a webhook") }))
		w.pod("done", 100)
		w.at(1)
		w.change("done", finished)
		w.expectCounts(want)
		report.Counts, report.Left = w.result().Counts, w.result().Left
	}, pods)
	inWorld(t, 100, func(w *world) {
		w.expectCounts(want)
	}, pods, func(w *world) {
		w.pod("done", 100, finished)
		w.restore = &report
	})
	if !refused {
		t.Error("no deletion was refused")
	}
}

func TestCutPodThatIsRemovedMissesAllSeconds(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		full(w)
		w.pod("app", 600)
		w.at(10)
		w.setView(func(v *View) { v.Proven = true })
		want := termination.CutShort{Pod: "default/app", UID: "uid-of-app", Reason: string(pod.BudgetBlocks),
			Budget: "default/web",
			Given:  10, Missing: 590}
		if cut := w.result().CutShort; len(cut) != 1 || cut[0] != want {
			t.Errorf("cut short: %+v, want %+v", cut, want)
		}
		w.expectCounts(termination.Counts{Removed: 1})
	})
}

func TestEndThatNobodySawIsUnknown(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		w.pod("app", 30, protected)
		w.expectCounts(termination.Counts{Left: 1})
		if err := (store{w.node}).Replace(nil, "2"); err != nil { // the watch broke, and began anew
			t.Error(err)
		}
		w.expectCounts(termination.Counts{Unknown: 1})
	})
}

// A pod that is deleted while its kubelet is dead gets no SIGTERM, and is killed with the machine.
func TestPodOfDeadKubeletHadNoGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		silent time.Duration
		given  int64
	}{
		"dead before the eviction":   {0, 0},
		"dead during the grace":      {11 * time.Second, 10},
		"dead after the last second": {40 * time.Second, 20},
	} {
		inWorld(t, 1000, func(w *world) {
			w.pod("app", 20)
			w.pod("agent", 20, daemonTolerant)
			w.at(100)
			w.setView(func(v *View) { v.Silent, v.SilentSince = true, w.begun.Add(tc.silent) })
			w.at(400) // not awaited any more
			w.setView(func(v *View) { v.Proven = true })
			w.expectCounts(termination.Counts{Removed: 1, WithNode: 1})
			cut := w.result().CutShort
			missing := 20 - tc.given
			if missing == 0 {
				if len(cut) > 0 {
					t.Errorf("%s: cut short: %+v", name, cut)
				}
				return
			}
			if len(cut) != 1 || cut[0].Given < tc.given-1 || cut[0].Given > tc.given+1 || cut[0].Given+cut[0].Missing != 20 ||
				cut[0].Reason != KubeletUnreachable {
				t.Errorf("%s: cut short: %+v, want %d s given", name, cut, tc.given)
			}
		})
	}
}

func daemonTolerant(p *v1.Pod) {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: &yes}}
	p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
}
