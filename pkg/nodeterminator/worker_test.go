package nodeterminator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// slowNodes is a client whose patches of Nodes a webhook delays by this time.
type slowNodes struct {
	kubernetes.Interface
	takes time.Duration
}

func (s slowNodes) CoreV1() corev1.CoreV1Interface { return slowCore{s.Interface.CoreV1(), s.takes} }

type slowCore struct {
	corev1.CoreV1Interface
	takes time.Duration
}

func (s slowCore) Nodes() corev1.NodeInterface { return slowNode{s.CoreV1Interface.Nodes(), s.takes} }

type slowNode struct {
	corev1.NodeInterface
	takes time.Duration
}

func (s slowNode) Patch(ctx context.Context, name string, kind types.PatchType, body []byte,
	options metav1.PatchOptions, subresources ...string) (*v1.Node, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.NodeInterface.Patch(ctx, name, kind, body, options, subresources...)
}

// 60 nodes get the label while a webhook takes 10 s for each patch of a Node.
func TestWebhookOfOtherNodesDelaysNoStop(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Client = slowNodes{w.client, 10 * time.Second}
		w.pods.result.Pods = node.Awaited
		go w.loop.Run(w.ctx, 50)
		for i := range 60 {
			n := labeledNode()
			n.Name = strings.Repeat("x", i+1)
			n.UID = types.UID(n.Name)
			n.Spec.ProviderID = "mock://" + n.Name
			w.cached(n)
			w.Notify(n.Name)
		}
		synctest.Wait()
		w.ends("a", "30s")
		<-time.After(time.Second)
		if !slices.Contains(w.machines.called(), "stop mock://a") {
			w.t.Error("Stop was not called within a second")
		}
	})
}

// podsByNode are the pods of each node.
type podsByNode map[string]*scriptedPods

func (p podsByNode) Pods(name string, _ types.UID) Pods { return p[name] }
func (podsByNode) Forget(string)                        {}

// ends adds a node whose first action was written a minute ago, and that is as it should be.
func (w *world) ends(name, period string) {
	w.t.Helper()
	at := time.Now().Add(-time.Minute)
	n := withFirstAction(deletedNode(name, period, at), at)
	n.Labels[v1.LabelNodeExcludeBalancers] = ""
	n.Annotations = map[string]string{termination.InstanceAnnotation: n.Spec.ProviderID,
		termination.ScaleDownDisabled: "true", termination.TimestampAnnotation: deadline.Of(termination.Requested(n),
			deadline.Limited(time.Hour)).Annotation()}
	if err := w.client.Tracker().Add(n); err != nil {
		w.t.Fatal(err)
	}
	w.cached(n)
	w.Notify(name)
}

// inReleases runs the test while 60 nodes are released, and a webhook takes 10 s for each patch of a Node.
func inReleases(t *testing.T, test func(w *world)) {
	t.Helper()
	inWorld(t, func(w *world) {
		w.Client = slowNodes{w.client, 10 * time.Second}
		pods := podsByNode{"a": {result: drain.Result{Synced: true, Pods: node.Awaited}}}
		w.Drainer = pods
		w.machines.states = map[string]instances.State{"mock://a": instances.Running}
		w.machines.state = instances.Gone
		w.ending = newSlots(30)
		for i := range 60 {
			name := fmt.Sprintf("n%02d", i)
			pods[name] = &scriptedPods{result: drain.Result{Synced: true, Settled: true}}
			w.ends(name, "1h")
		}
		go w.work(w.ctx, 10)
		<-time.After(3 * time.Second)
		test(w)
	})
}

// They took all workers.
func TestReleaseOfOtherNodesDelaysNoStop(t *testing.T) {
	inReleases(t, func(w *world) {
		w.ends("a", "30s")
		<-time.After(time.Second)
		if !slices.Contains(w.machines.called(), "stop mock://a") {
			w.t.Error("Stop was not called within a second")
		}
		<-time.After(time.Minute)
		synctest.Wait()
		for name, one := range w.terminations {
			if name != "a" && !one.released {
				w.t.Errorf("node %s is not released", name)
			}
		}
	})
}

// They took all slots, so that no pod was evicted.
func TestReleaseOfOtherNodesDelaysNoFirstAction(t *testing.T) {
	inReleases(t, func(w *world) {
		n := deletedNode("a", "30m", time.Now())
		if err := w.client.Tracker().Add(n); err != nil {
			w.t.Fatal(err)
		}
		w.cached(n)
		w.Notify("a")
		<-time.After(3 * time.Second)
		pods := w.Drainer.(podsByNode)["a"].seen()
		if !slices.ContainsFunc(pods, func(view drain.View) bool { return view.Drain }) {
			w.t.Error("no pod is evicted 3 s after the DELETE")
		}
	})
}

// A webhook holds a write of the node while the node is deleted: the first action must not wait for that, nor Stop.
func TestWriteBeforeDeletionDelaysNoStop(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Client = slowNodes{w.client, time.Hour}
		w.pods.result.Pods = node.Awaited
		live := liveNode("a")
		live.Annotations = nil // the machine is seen first now, which is written down
		w.cached(live)
		go w.work(w.ctx, 10)
		w.Notify("a")
		<-time.After(3 * time.Second)
		n := deletedNode("a", "10s", time.Now())
		if err := w.client.Tracker().Add(n); err != nil {
			w.t.Fatal(err)
		}
		w.cached(n)
		w.nodeChanged(live, n)
		<-time.After(11 * time.Second)
		if !slices.Contains(w.machines.called(), "stop mock://a") {
			w.t.Errorf("Stop was not called a second after E: %q", w.machines.called())
		}
	})
}

// The webhook hangs for as long as it may. The label of load balancers and the annotation of the autoscaler come later.
func TestHangingWebhookDelaysPodsByTwoSeconds(t *testing.T) {
	inWorld(t, func(w *world) {
		n := deletedNode("a", "20s", time.Now())
		if err := w.client.Tracker().Add(n); err != nil {
			w.t.Fatal(err)
		}
		w.Client = slowNodes{w.client, time.Hour}
		go w.loop.Run(w.ctx, 1)
		w.cached(n)
		w.Notify("a")
		<-time.After(2100 * time.Millisecond)
		synctest.Wait()
		if len(w.pods.seen()) == 0 || !w.pods.seen()[len(w.pods.seen())-1].Drain {
			w.t.Errorf("pods wait for the webhook: %+v", w.pods.seen())
		}
		one := w.termination("a")
		change, err := w.restoration(n, one, &observation{}).Bytes()
		for _, want := range []string{termination.ScaleDownDisabled, v1.LabelNodeExcludeBalancers,
			termination.DisruptedTaint} {
			if text := string(change); err != nil || !strings.Contains(strings.ReplaceAll(text, "~1", "/"), want) {
				w.t.Errorf("%s is not restored: %s, %v", want, text, err)
			}
		}
	})
}

// The cloud controller sets the providerID after the deletion.
func TestLateProviderIDIsAskedAbout(t *testing.T) {
	inWorld(t, func(w *world) {
		at := time.Now().Add(-time.Minute)
		n := withFirstAction(deletedNode("a", "1h", at), at)
		n.Spec.ProviderID = ""
		w.begun(n)
		late := n.DeepCopy()
		late.ResourceVersion, late.Spec.ProviderID = "8", "mock://late"
		w.cached(late)
		_ = w.Reconcile(w.t.Context(), "a")
		synctest.Wait()
		if last := w.machines.called()[len(w.machines.called())-1]; last != "get mock://late" {
			w.t.Errorf("asked %q", w.machines.called())
		}
		asked := len(w.machines.called())
		<-time.After(20 * time.Minute)
		if slices.Contains(w.machines.called()[asked:], "get ") {
			w.t.Error("the machine without an ID is still asked about")
		}
	})
}

// A finalizer of others keeps the Node for long.
func TestReleasedNodeIsNotAskedAbout(t *testing.T) {
	inWorld(t, func(w *world) {
		at := time.Now().Add(-time.Minute)
		n := withFirstAction(deletedNode("a", "1h", at), at)
		n.Finalizers = append(n.Finalizers, "others.example/keep")
		if err := w.client.Tracker().Add(n); err != nil {
			w.t.Fatal(err)
		}
		one := w.begun(n)
		if err := w.release(w.t.Context(), n, one); err != nil {
			w.t.Fatal(err)
		}
		asked := len(w.machines.called())
		<-time.After(time.Hour)
		if len(w.machines.called()) != asked {
			w.t.Errorf("asked %d times after the release", len(w.machines.called())-asked)
		}
	})
}

// The claims are read while the node is observed.
func TestClaimThatIsReadInBetweenCounts(t *testing.T) {
	inWorld(t, func(w *world) {
		requested := time.Now().UTC().Add(-time.Minute)
		hour := requested.Add(time.Hour)
		w.Claims = claimsRead(w.t)
		w.Claims.synced = func() bool {
			if err := w.Claims.informer.GetStore().Add(claimWith("a", termination.ClaimGroup, "1h")); err != nil {
				w.t.Error(err)
			}
			return true
		}
		n := withFirstAction(deletedNode("a", "5m", requested), requested)
		n.Annotations = map[string]string{termination.TimestampAnnotation: hour.Format(time.RFC3339)}
		o, err := w.observe(w.t.Context(), n, w.begun(n))
		if err != nil || !o.deadline.End.Equal(hour) {
			w.t.Errorf("%v, %v, want %v", o.deadline, err, hour)
		}
	})
}

// #02 An earlier time counts, and a later one does not, also while claims cannot be read.
func TestDeadlineWithoutClaimsMovesNotLater(t *testing.T) {
	inWorld(t, func(w *world) {
		requested := time.Now().UTC().Add(-time.Minute)
		w.Claims = &Claims{changed: func(string) {}}
		n := withFirstAction(deletedNode("a", "30m", requested), requested)
		one := w.begun(n)
		for i, after := range []time.Duration{10 * time.Minute, 20 * time.Minute, 20 * time.Minute} {
			n.Annotations = map[string]string{termination.TimestampAnnotation: requested.Add(after).Format(time.RFC3339)}
			w.Claims.known = i == 2
			o, err := w.observe(w.t.Context(), n, one)
			if want := requested.Add(10 * time.Minute); err != nil || !o.deadline.End.Equal(want) {
				w.t.Errorf("R + %v: %v, %v, want %v", after, o.deadline, err, want)
			}
		}
	})
}

// A mutating webhook takes each restored label back: one write each second, not one after the other.
func TestUndoneWriteIsRepeatedSlowly(t *testing.T) {
	inWorld(t, func(w *world) {
		one, writes := w.begun(deletedNode("a", "20s", time.Now())), 0
		var busy bool
		for range 300 {
			w.background(one, &busy, func(context.Context) error {
				writes++
				return nil
			})
			<-time.After(10 * time.Millisecond)
			synctest.Wait()
		}
		if writes < 3 || writes > 4 {
			w.t.Errorf("%d writes in 3 s", writes)
		}
	})
}
