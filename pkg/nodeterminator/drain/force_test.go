package drain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

// deletedByOthers is a pod that others deleted a moment ago, with this grace period.
func deletedByOthers(seconds int64) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Duration(seconds) * time.Second)}
		p.DeletionGracePeriodSeconds = &seconds
	}
}

// A dead kubelet ends no pod, however short its grace period is.
func TestShortenedPodIsRemovedAfterProof(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		w.script(refusing("DELETE", func() *answer { // the API server shows no effect
			return &answer{code: 200, status: &metav1.Status{Status: metav1.StatusSuccess}}
		}))
		w.pod("stuck", 600, deletedByOthers(600))
		w.at(95)
		w.expectRequests("95.0 DELETE stuck 1")
		w.at(110)
		w.expectRequests() // shortened once
		w.script(nil)
		w.setView(func(v *View) { v.Proven = true })
		w.expectRequests("110.0 PATCH stuck status 0", "110.0 DELETE stuck 0")
		if pods := w.result().Pods; pods != node.NoPods {
			t.Errorf("the node waits: %v", pods)
		}
	})
}

// The user deletes the pod while our condition is on its way.
func TestConditionAloneIsNoDeletion(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		full(w)
		hold := make(chan struct{})
		w.script(refusing("PATCH", func() *answer { return &answer{release: hold} }))
		p := w.pod("app", 100)
		w.at(0.5)
		deletedByOthers(99)(p)
		if _, err := w.client.CoreV1().Pods("default").Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.at(0.6)
		close(hold)
		w.at(5)
		w.expectRequests("0.0 PATCH app status 0")
		w.expectReason("app", pod.Terminating)
		w.end("app")
		w.expectCounts(termination.Counts{Others: 1})
	})
}

// #27 The pod of a Job ends with the condition that its podFailurePolicy may ignore.
func TestConditionComesBeforeDeletion(t *testing.T) {
	ignored := batchv1.PodFailurePolicyOnPodConditionsPattern{Type: v1.DisruptionTarget, Status: v1.ConditionTrue}
	inWorld(t, 100, func(w *world) {
		full(w)
		hold := make(chan struct{})
		var patched v1.Pod
		w.script(func(r sentRequest) *answer {
			if r.method != "PATCH" {
				return nil
			}
			if err := json.Unmarshal(r.body, &patched); err != nil {
				t.Error(err)
			}
			return &answer{release: hold}
		})
		w.pod("job", 100, func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "job", Controller: new(true)}}
		})
		w.at(0.5)
		w.expectRequests("0.0 PATCH job status 0")
		if !slices.ContainsFunc(patched.Status.Conditions, func(c v1.PodCondition) bool {
			return c.Type == ignored.Type && c.Status == ignored.Status
		}) {
			t.Errorf("podFailurePolicy counts the pod: %+v", patched.Status.Conditions)
		}
		close(hold)
		w.expectRequests("0.5 DELETE job 100")
	})
}

func TestProofIsLookedAtBeforeRemoval(t *testing.T) {
	for name, doubt := range map[string]func(*world, *atomic.Bool){
		"the node was reconciled":     func(w *world, _ *atomic.Bool) { w.setView(func(v *View) { v.Proven = false }) },
		"the node was not reconciled": func(_ *world, back *atomic.Bool) { back.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			var back atomic.Bool
			inWorld(t, 100, func(w *world) {
				hold := make(chan struct{})
				w.script(refusing("PATCH", func() *answer { return &answer{release: hold} }))
				w.pod("app", 30, deletedByOthers(30))
				w.at(0.5)
				w.expectRequests("0.0 PATCH app status 0")
				doubt(w, &back)
				close(hold)
				w.at(0.9)
				w.expectRequests()
			}, func(w *world) {
				w.view.Proven = true
				w.view.Holds = func() bool { return !back.Load() }
			})
		})
	}
}

// occupy has all places of the forced lane taken by deletions that are not answered until the channel is closed. They
// are due at the first second.
func occupy(w *world) chan struct{} {
	full(w)
	hold := make(chan struct{})
	w.script(func(r sentRequest) *answer {
		if r.method == "DELETE" && strings.HasPrefix(r.name, "hung") {
			return &answer{release: hold}
		}
		return nil
	})
	for i := range forcedSlots {
		w.pod(fmt.Sprintf("hung-%d", i), 99)
	}
	return hold
}

// change changes the pod on the API server.
func (w *world) change(name string, f func(*v1.Pod)) {
	w.t.Helper()
	pods := w.client.CoreV1().Pods("default")
	p, err := pods.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	p = p.DeepCopy()
	f(p)
	if _, err = pods.Update(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func TestPodThatOthersDeletedIsNotDeletedAgain(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		hold := occupy(w)
		w.pod("app", 97)
		w.at(3.5)
		w.forgetRequests()
		w.change("app", deletedByOthers(96))
		close(hold)
		w.at(5)
		w.expectRequests()
	})
}

func TestDetachedVolumeMovesForcedDeletion(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		hold := occupy(w)
		w.pod("app", 97)
		w.at(3.5)
		w.forgetRequests()
		w.mu.Lock() // the last volume was detached, and the node is not reconciled yet
		w.view.Times.GraceEnds = w.begun.Add(125 * time.Second)
		w.node.drainer.mu.Lock()
		w.node.view.Times.GraceEnds = w.begun.Add(125 * time.Second)
		w.node.drainer.mu.Unlock()
		close(hold)
		w.mu.Unlock()
		synctest.Wait()
		w.expectRequests()
	})
}

func TestRefusalBeforeProofDelaysNoRemoval(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		full(w)
		w.script(refusing("DELETE", func() *answer { return refusal(403, "denied by a webhook") }))
		w.pod("app", 90)
		w.at(106)
		w.forgetRequests()
		hold := make(chan struct{})
		w.script(func(sentRequest) *answer { return &answer{release: hold} })
		w.setView(func(v *View) { v.Proven = true })
		if pods := w.result().Pods; pods == node.Kept {
			t.Error("the pod counts as kept before it was removed")
		}
		close(hold)
		w.expectRequests("106.0 PATCH app status 0", "106.0 DELETE app 0")
	})
}

// A webhook holds the deletions of one application.
func TestHungDeletionsDelayNoOthers(t *testing.T) {
	inWorld(t, 100, func(w *world) {
		occupy(w)
		w.pod("first", 98)
		w.pod("second", 88)
		w.at(1.9)
		w.forgetRequests()
		w.at(2)
		w.expectRequests("2.0 PATCH first status 0", "2.0 DELETE first 98")
		w.at(11.9) // the first attempts ended at 11 s
		w.forgetRequests()
		w.at(12) // they begin again
		w.mu.Lock()
		sent, again := slices.Contains(w.requests, "12.0 DELETE second 88"), 0
		for _, request := range w.requests {
			if strings.Contains(request, "DELETE hung") {
				again++
			}
		}
		w.mu.Unlock()
		if !sent || again != repeatedSlots {
			t.Errorf("sent: %v, and %d that failed before", sent, again)
		}
	})
}

func TestUnansweredStepsAreSkippedForOthers(t *testing.T) {
	for method, last := range map[string]float64{"POST": lastEviction.Seconds(), "PATCH": markTimeout.Seconds()} {
		t.Run(method, func(t *testing.T) {
			inWorld(t, 100, func(w *world) {
				never := make(chan struct{})
				w.script(refusing(method, func() *answer { return &answer{release: never} }))
				for i := range 3 * forcedSlots {
					w.pod(fmt.Sprintf("app-%d", i), 90, protected)
				}
				w.at(10 + last)
				w.mu.Lock()
				deleted := 0
				for _, request := range w.requests {
					if strings.Contains(request, "DELETE") || method == "PATCH" && strings.Contains(request, "POST") {
						deleted++
					}
				}
				w.mu.Unlock()
				if deleted != 3*forcedSlots {
					t.Errorf("%d pods are deleted", deleted)
				}
			}, func(w *world) {
				if method == "PATCH" {
					full(w)
				}
			})
		})
	}
}
