package runner

import (
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

func TestClaimWithUnseenVolumeIsNotDeleted(t *testing.T) { // 06, 21
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	refuses := func(c *fake.Clientset) {
		c.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("no answer")
		})
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		change  func(*fake.Clientset)
		deletes bool
	}{
		"no volume":  {nil, func(*fake.Clientset) {}, true},
		"a volume":   {[]runtime.Object{volume}, func(*fake.Clientset) {}, false},
		"unreadable": {nil, refuses, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(tc.objects...)
			tc.change(client)
			s := &session{Runner: New(Config{Clients: &Clients{Objects: client}})}
			if err := s.confirmUnseen(t.Context(), "pvc-1"); (err == nil) != tc.deletes {
				t.Errorf("error %v, want none: %t", err, tc.deletes)
			}
		})
	}
}

// A batch has up to 100 steps: what the watch shows amid it ends the rest (#71, and the deadline).
func TestStoppedBatchDeletesNothingMore(t *testing.T) {
	armed := deletedAlive(true)
	armed.Spec.ConfirmedAt = new(metav1.Now())
	protected, over := armed.DeepCopy(), armed.DeepCopy()
	protected.Spec.Protected = new(true)
	over.Spec.ConfirmedAt = new(metav1.NewTime(time.Now().Add(-alive.MaxTimeout)))
	for name, tc := range map[string]struct {
		shown   *alive.Alive
		deletes bool
	}{"permitted": {armed, true}, "protected": {protected, false}, "over": {over, false}} {
		t.Run(name, func(t *testing.T) {
			r := newTestRunner(t, nil)
			deletes := false
			pods := v1.SchemeGroupVersion.WithResource("pods")
			r.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("delete", pods.Resource,
				func(clienttesting.Action) (bool, runtime.Object, error) {
					deletes = true
					return true, nil, nil
				})
			s := newSession(r, leads(true), armed, time.Time{})
			r.current = tc.shown
			err := s.step(t.Context(), inventory.Step{Action: inventory.Delete, Kind: "Pod", Namespace: "shop", Name: "web",
				Resource: pods})
			if deletes != tc.deletes || (err == nil) != tc.deletes {
				t.Errorf("deletes %t, %v, want %t", deletes, err, tc.deletes)
			}
		})
	}
}

// A user takes back the policy of a volume that was kept: it is kept again after a moment, and the round comes by itself.
func TestUndoneStepIsRepeatedSoon(t *testing.T) {
	now := time.Now()
	s := &session{Runner: New(Config{Waits: Waits{Retry: time.Second}}), tries: map[types.UID]try{}}
	step := inventory.Step{UID: "a", ResourceVersion: "1"}
	s.settle(view{now: now}, step, nil)
	if due := s.due(view{now: now.Add(2 * time.Second), steps: []inventory.Step{step}}); len(due) != 0 || s.wake.IsZero() {
		t.Errorf("the watch is late: due %v, wakes at %s", due, s.wake)
	}
	step.ResourceVersion, s.wake = "3", time.Time{}
	if due := s.due(view{now: now, steps: []inventory.Step{step}}); len(due) != 0 || !s.wake.Equal(now.Add(time.Second)) {
		t.Errorf("due at once: %v, wakes at %s", due, s.wake)
	}
	if due := s.due(view{now: now.Add(2 * time.Second), steps: []inventory.Step{step}}); len(due) != 1 {
		t.Errorf("not due: %v", due)
	}
}
