package nodeterminator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/servertime"
	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// controllerOf returns a controller with the client, whose caches are empty and not filled.
func controllerOf(t *testing.T, client *fake.Clientset, claims *Claims) *Controller {
	t.Helper()
	caches, err := NewCaches(informers.NewSharedInformerFactory(client, 0))
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Client: client, Caches: caches, Recorder: &record.FakeRecorder{}, Clock: servertime.New(),
		Namespace: "exeunt-system", Claims: claims})
}

// terminating is a node with the label 5m whose first action was written.
func terminating(requested time.Time, annotation string) *v1.Node {
	n := labeledNode()
	n.UID, n.ResourceVersion, n.Labels[termination.Label] = "u", "7", "5m"
	n.Finalizers, n.DeletionTimestamp = []string{termination.Finalizer}, &metav1.Time{Time: requested}
	n.Spec.Taints = []v1.Taint{{Key: termination.DisruptedTaint, Effect: v1.TaintEffectNoSchedule,
		TimeAdded: &metav1.Time{Time: requested}}}
	if annotation != "" {
		n.Annotations = map[string]string{termination.TimestampAnnotation: annotation}
	}
	return n
}

func TestLabelCutsNoClaimThatIsNotKnownYet(t *testing.T) {
	requested := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	hour := requested.Add(time.Hour)
	for name, tc := range map[string]struct {
		annotation string
		period     any
		want       time.Time
	}{
		"a claim with an hour":       {hour.Format(time.RFC3339), "1h", hour},
		"a claim without a deadline": {"", nil, time.Time{}},
		"no claim":                   {"", "none", requested.Add(5 * time.Minute)},
	} {
		claims := &Claims{changed: func(string) {}}
		c := controllerOf(t, fake.NewClientset(), claims)
		n, term := terminating(requested, tc.annotation), &nodeTermination{name: "n", uid: "u"}
		observe := func() deadline.Deadline {
			o := &observation{now: requested.Add(time.Minute), unknown: claims.unreadable()}
			period, served, _, _ := c.periodOf(n)
			c.observeTime(n, term, o, period, served)
			return o.deadline
		}
		if d := observe(); tc.annotation == "" && !d.None() || tc.annotation != "" && !d.End.Equal(hour) {
			t.Errorf("%s, not known yet: %v", name, d)
		}
		claims.known = true
		if tc.period != "none" {
			claims.informer = claimsRead(t, claimWith("n", termination.ClaimGroup, tc.period)).informer
			claims.synced = func() bool { return true }
		}
		if d := observe(); !d.End.Equal(tc.want) {
			t.Errorf("%s: %v, want %v", name, d, tc.want)
		}
	}
}

func TestSlowWebhookTakesFewWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(liveWrites)
		answered := make(chan struct{})
		for i := range 10 * liveWrites {
			go func() { _ = s.run(t.Context(), fmt.Sprint(i), func(context.Context) error { <-answered; return nil }) }()
		}
		synctest.Wait()
		if err := s.run(t.Context(), "n", func(context.Context) error { return nil }); !errors.Is(err, errNoSlot) || s.next() != "" {
			t.Errorf("another write: %v", err)
		}
		close(answered)
		synctest.Wait()
		if err := s.run(t.Context(), "n", func(context.Context) error { return nil }); err != nil {
			t.Errorf("a write after the answers: %v", err)
		}
		woken := map[string]bool{}
		for node := s.next(); node != ""; node = s.next() {
			woken[node] = true
		}
		if len(woken) != 9*liveWrites+1 || !woken["n"] {
			t.Errorf("%d nodes are reconciled again", len(woken))
		}
	})
}

// A webhook takes a minute for each patch, and more nodes than slots want one. Who waits is not reconciled meanwhile.
func TestNodesWithoutSlotAreNotPolled(t *testing.T) {
	inWorld(t, func(w *world) {
		var patched atomic.Int64
		w.Client = countedNodes{slowNodes{w.client, time.Minute}, &patched}
		var reconciled atomic.Int64
		w.loop = controller.NewLoop("node", backoff, func(ctx context.Context, name string) error {
			reconciled.Add(1)
			return w.Reconcile(ctx, name)
		})
		go w.loop.Run(w.ctx, 50)
		for i := range 2 * liveWrites {
			n := labeledNode()
			n.Name = fmt.Sprintf("n%d", i)
			n.UID, n.Spec.ProviderID = types.UID(n.Name), "mock://"+n.Name
			w.cached(n)
			w.Notify(n.Name)
		}
		<-time.After(29 * time.Second)
		if got := reconciled.Load(); got != 2*liveWrites {
			w.t.Errorf("%d nodes were reconciled %d times", 2*liveWrites, got)
		}
		<-time.After(32 * time.Second)
		if got := patched.Load(); got < 2*liveWrites {
			w.t.Errorf("%d patches after the first ones ended, want one of each node", got)
		}
	})
}

// countedNodes counts the patches of Nodes.
type countedNodes struct {
	slowNodes
	patched *atomic.Int64
}

func (c countedNodes) CoreV1() corev1.CoreV1Interface {
	return countedCore{c.slowNodes.CoreV1(), c.patched}
}

type countedCore struct {
	corev1.CoreV1Interface
	patched *atomic.Int64
}

func (c countedCore) Nodes() corev1.NodeInterface {
	c.patched.Add(1)
	return c.CoreV1Interface.Nodes()
}

func TestHangingFirstActionEatsNoDrain(t *testing.T) {
	requested := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for want, o := range map[time.Duration]*observation{
		2 * time.Second:        {now: requested, deadline: deadline.Of(requested, deadline.Limited(time.Hour))},
		1 * time.Second:        {now: requested, deadline: deadline.Of(requested, deadline.Limited(4*time.Second))},
		200 * time.Millisecond: {now: requested, deadline: deadline.Of(requested, deadline.Limited(0))},
	} {
		if got := firstActionLimit(o); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// providerFunc is a provider that tells which machine it was asked about.
type providerFunc func(i instances.Instance)

func (f providerFunc) Get(_ context.Context, i instances.Instance) (instances.State, error) {
	f(i)
	return instances.Running, nil
}

func (f providerFunc) Stop(ctx context.Context, i instances.Instance) (instances.State, error) {
	return f.Get(ctx, i)
}

func (f providerFunc) Delete(ctx context.Context, i instances.Instance) (instances.State, error) {
	return f.Get(ctx, i)
}

func TestProviderIDThatComesLateIsAskedFor(t *testing.T) {
	asked := make(chan string, 10)
	c := controllerOf(t, fake.NewClientset(), nil)
	c.Provider, c.Instances = node.Socket, providerFunc(func(i instances.Instance) { asked <- i.ProviderID })
	n := labeledNode()
	n.Spec.ProviderID = ""
	term := &nodeTermination{name: "n", ctx: t.Context(), end: func() {}}
	defer func() { term.stop() }()
	c.followMachine(n, term)
	first := <-asked
	term.proof = proof{given: true, renewals: 3}
	n.Spec.ProviderID = "cloud://1"
	c.followMachine(n, term)
	if second := <-asked; first != "" || second != "cloud://1" || term.proof.given || term.proof.renewals != 3 {
		t.Errorf("asked for %q and %q, %+v", first, second, term.proof)
	}
}
