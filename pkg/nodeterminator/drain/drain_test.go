package drain

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// refusing answers requests of the method about the pods.
func refusing(method string, a func() *answer, names ...string) func(sentRequest) *answer {
	return func(r sentRequest) *answer {
		if r.method != method || len(names) > 0 && !strings.Contains(strings.Join(names, " "), r.name) {
			return nil
		}
		return a()
	}
}

// full creates a budget of all pods that has room for none.
func full(w *world) {
	_, err := w.client.PolicyV1().PodDisruptionBudgets("default").Create(w.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func TestForcedDeletionsPassHungEvictions(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		full(w)
		w.pod("blocked", 90)
		never := make(chan struct{})
		w.script(refusing("POST", func() *answer { return &answer{release: never} }))
		for i := range evictionSlots {
			w.pod(fmt.Sprintf("hung-%d", i), 30, func(p *v1.Pod) { p.Namespace, p.Status.Phase = "default", v1.PodPending })
		}
		w.at(9.9)
		w.forgetRequests()
		w.at(10)
		w.expectRequests("10.0 PATCH blocked status 0", "10.0 DELETE blocked 90")
	})
}

// An eviction in flight has half a second at L, and then counts as refused.
func TestHungEvictionIsForcedAtDeadline(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		never := make(chan struct{})
		w.script(refusing("POST", func() *answer { return &answer{release: never} }))
		w.pod("early", 80)
		w.expectRequests("0.0 POST early eviction 80")
		w.at(20)
		w.expectRequests("20.0 PATCH early status 0", "20.0 DELETE early 80")
		w.expectEvent("Disrupted", "its eviction was refused")
		if cut := w.result().CutShort; len(cut) != 1 || cut[0].Reason != string(pod.EvictionRefused) {
			t.Errorf("cut short: %+v", cut)
		}
	})
}

func TestEvictionAtDeadlineHasHalfSecond(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		never := make(chan struct{})
		w.script(refusing("POST", func() *answer { return &answer{release: never} }))
		w.pod("app", 100)
		w.at(0.4)
		w.expectRequests("0.0 POST app eviction 100")
		w.at(0.5)
		w.expectRequests("0.5 PATCH app status 0", "0.5 DELETE app 100")
	})
}

func TestOverloadedServerPausesEvictionsOnly(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		w.script(refusing("POST", func() *answer { return &answer{code: 429, text: "Too many requests", retry: 7} }))
		w.pod("a", 30)
		w.pod("b", 97)
		w.expectRequests("0.0 POST a eviction 30")
		w.expectReason("b", pod.RequestsPause)
		w.at(3)
		w.expectRequests("3.0 PATCH b status 0", "3.0 DELETE b 97")
		w.script(nil)
		w.at(6.9)
		w.expectRequests()
		w.at(7)
		w.expectRequests("7.0 POST a eviction 30")
	})
}

func TestUnreachableServerIsAskedEachSecond(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		w.script(func(sentRequest) *answer { return &answer{} })
		w.pod("a", 30)
		w.pod("b", 30)
		w.at(1)
		w.expectRequests("0.0 POST a eviction 30", "1.0 POST a eviction 30", "1.0 POST b eviction 30")
		w.script(nil)
		w.at(2)
		w.expectRequests("2.0 POST a eviction 30", "2.0 POST b eviction 30")
	})
}

// By default client-go repeats a request after a 429 with Retry-After.
func TestBlockedEvictionIsNotRepeatedByClient(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		w.script(refusing("POST", func() *answer {
			a := fullBudget("web")
			a.retry, a.status.Details.RetryAfterSeconds = 10, 10
			return a
		}))
		w.pod("app", 30)
		w.at(4.9)
		w.expectRequests("0.0 POST app eviction 30")
		if w.expectReason("app", pod.BudgetBlocks); w.left("app").Holder != "web" {
			t.Errorf("%+v", w.left("app"))
		}
		w.at(5) // the budget is not known
		w.expectRequests("5.0 POST app eviction 30")
	})
}

// #17 The other pod is not delayed.
func TestRefusedDeletionIsRetriedAndNamed(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		full(w)
		w.script(refusing("DELETE", func() *answer { return refusal(403, "denied by a webhook") }, "kept"))
		w.pod("kept", 100)
		w.pod("other", 99)
		w.at(1)
		w.expectRequests("0.0 PATCH kept status 0", "0.0 DELETE kept 100", "1.0 DELETE kept 99",
			"1.0 PATCH other status 0", "1.0 DELETE other 99")
		if left := w.left("kept"); left.Reason != DeletionRefused || !strings.Contains(left.Holder, "denied by a webhook") {
			t.Errorf("%+v", left)
		}
		w.expectEvent("Disrupted")
		w.expectNoEvent()
		w.at(6.9)
		w.expectRequests("3.0 DELETE kept 97")
		w.expectEvent(DeletionRefused, "denied by a webhook")
		w.at(100)
		w.expectRequests("7.0 DELETE kept 93", "15.0 DELETE kept 85", "31.0 DELETE kept 69", "61.0 DELETE kept 39",
			"91.0 DELETE kept 9")
		w.expectNoEvent()
		w.script(nil)
		w.at(121)
		w.expectRequests("121.0 DELETE kept 1")
		w.expectEvent("Disrupted", "1 s of its grace period of 100 s")
		if got := testutil.ToFloat64(w.drainer.deletions.WithLabelValues(string(pod.BudgetBlocks))); got != 2 {
			t.Errorf("%v pods were deleted by force, want 2", got)
		}
	})
}

func TestRemovalThatIsRefusedKeepsPod(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		w.script(refusing("DELETE", func() *answer { return refusal(403, "denied by a webhook") }))
		w.pod("kept", 30)
		w.at(2.9)
		if pods := w.result().Pods; pods != node.Stuck {
			t.Errorf("after two refusals: %v", pods)
		}
		w.at(3)
		if pods := w.result().Pods; pods != node.Kept {
			t.Errorf("after three refusals: %v", pods)
		}
		w.script(nil)
		w.at(7)
		if result := w.result(); result.Pods != node.NoPods || result.Counts.Removed != 1 {
			t.Errorf("%+v", result)
		}
	}, func(w *world) { w.view.Proven = true })
}

// A process that was frozen, or does not lead any more, must not remove a pod: its machine may run again.
func TestPodIsRemovedByLeaderOnly(t *testing.T) {
	var leading atomic.Bool
	inWorld(t, 100, func(w *world) {
		w.pod("app", 30)
		w.at(5)
		w.expectRequests()
		leading.Store(true)
		w.at(6)
		w.expectRequests("6.0 PATCH app status 0", "6.0 DELETE app 0")
	}, func(w *world) {
		w.view.Proven = true
		w.config.Leading = leading.Load
	})
}

func TestRevokedProofStopsRemoval(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		w.script(refusing("DELETE", func() *answer { return refusal(500, "internal error") }))
		w.pod("app", 30)
		w.expectRequests("0.0 PATCH app status 0", "0.0 DELETE app 0")
		w.script(nil)
		w.setView(func(v *View) { v.Proven = false })
		w.at(1)
		w.expectRequests("0.0 POST app eviction 30")
	}, func(w *world) { w.view.Proven = true })
}

func TestEndingNamespaceKeepsPodUntilDeadline(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		w.pod("app", 90)
		w.at(9)
		w.expectRequests()
		w.expectReason("app", pod.NamespaceEnds)
		w.at(10)
		w.expectRequests("10.0 PATCH app status 0", "10.0 DELETE app 90")
		w.expectEvent("Disrupted", "namespace")
	}, func(w *world) { w.config.NamespaceEnds = func(string) bool { return true } })
}

func TestDaemonIsEvictedAtP(t *testing.T) {
	yes := true
	inWorld(t, 100, func(w *world) {
		w.pod("agent", 30, func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: &yes}}
		})
		w.at(99)
		w.expectRequests()
		w.at(100)
		w.expectRequests("100.0 POST agent eviction 5")
		if cut := w.result().CutShort; len(cut) != 1 || cut[0].Owner != "DaemonSet/agent" || cut[0].Missing != 25 {
			t.Errorf("cut short: %+v", cut)
		}
	}, func(w *world) { w.view.Volumes = true })
}

func TestOverduePodIsNotAwaited(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		w.pod("app", 30)
		w.at(89)
		w.expectReason("app", pod.Terminating)
		w.at(90)
		w.expectReason("app", pod.KubeletStuck)
		if result := w.result(); result.Pods != node.Stuck || len(result.Unawaited) != 1 || len(result.Awaited) != 0 {
			t.Errorf("%+v", result)
		}
		w.setView(func(v *View) { v.Silent = true })
		w.expectReason("app", pod.Terminating)
		w.at(330)
		w.expectReason("app", KubeletUnreachable)
	})
}

func TestPodIsAwaitedWhileSidecarRuns(t *testing.T) {
	inWorld(t, 1000, func(w *world) {
		w.pod("job", 300, deletedByOthers(300), func(p *v1.Pod) {
			p.Finalizers = []string{"batch.kubernetes.io/job-tracking"}
			p.Status.ContainerStatuses = []v1.ContainerStatus{
				{State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}}
			p.Status.InitContainerStatuses = []v1.ContainerStatus{
				{State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
		})
		w.expectReason("job", pod.Terminating)
		w.change("job", func(p *v1.Pod) { p.Status.InitContainerStatuses = nil })
		w.expectReason("job", pod.ForeignFinalizer)
	})
}

func TestReplacedPodIsAnotherPod(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		hold := make(chan struct{})
		w.script(refusing("POST", func() *answer { return &answer{release: hold} }))
		w.pod("app", 30)
		w.end("app")
		w.pod("app", 30, func(p *v1.Pod) { p.UID = "another" })
		w.expectRequests("0.0 POST app eviction 30", "0.0 POST app eviction 30")
		w.script(nil)
		close(hold) // the first is refused for its UID
		w.at(1)
		if counts := w.result().Counts; counts != (termination.Counts{Others: 1, Left: 1}) {
			t.Errorf("%+v", counts)
		}
		w.expectReason("app", pod.Terminating)
	})
}

func TestAcceptedEvictionWithoutEffectIsRepeated(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		w.script(func(sentRequest) *answer {
			return &answer{code: 201, status: &metav1.Status{Status: metav1.StatusSuccess}}
		})
		w.pod("app", 30)
		w.at(29.9)
		w.expectRequests("0.0 POST app eviction 30")
		w.expectReason("app", pod.Terminating)
		w.at(30)
		w.expectRequests("30.0 POST app eviction 30")
	})
}

func TestTightenedDeadlineForcesAtOnce(t *testing.T) {
	inWorld(t, 3600, func(w *world) {
		full(w)
		w.pod("app", 30)
		w.at(10)
		w.expectRequests()
		w.setView(func(v *View) {
			v.Deadline.End = w.begun.Add(35 * time.Second)
			v.Times = v.Deadline.Times(w.begun, false)
		})
		w.expectRequests("10.0 PATCH app status 0", "10.0 DELETE app 20")
	})
}

// A slow API server counts from a moment after P - g. The pod is shortened only if P moves.
func TestOwnDeletionIsShortenedOnlyIfDeadlineMoves(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		w.script(func(r sentRequest) *answer {
			if r.method == "DELETE" {
				<-time.After(3 * time.Second)
			}
			return w.carryOut(r)
		})
		full(w)
		w.pod("app", 80)
		w.at(40)
		w.script(nil)
		w.expectRequests("20.0 PATCH app status 0", "20.0 DELETE app 80")
		w.at(96)
		w.expectRequests()
		w.expectReason("app", pod.Terminating)
		w.setView(func(v *View) {
			v.Deadline.End = v.Deadline.End.Add(-3 * time.Second)
			v.Times = v.Deadline.Times(w.begun, false)
		})
		w.expectRequests("96.0 DELETE app 1")
	})
}

func TestNodeWithAnotherUIDIsAnotherNode(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		full(w)
		w.pod("app", 30)
		same, other := w.drainer.Node("n", "uid-of-n"), w.drainer.Node("n", "another")
		if same != w.node || other == w.node {
			t.Error("the node is not told by its UID")
		}
		if _, err := w.node.Reconcile(t.Context(), View{}); err == nil {
			t.Error("a node that was replaced is drained")
		}
		w.drainer.Forget("n")
		w.at(100)
		w.expectRequests()
	})
}
