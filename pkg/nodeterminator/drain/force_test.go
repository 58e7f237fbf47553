package drain

import (
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination/node"
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
