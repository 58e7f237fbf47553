package nodeterminator

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// proven is a node whose machine is off: it was deleted a minute ago.
func proven() *v1.Node {
	at := time.Now().Add(-time.Minute)
	return withFirstAction(deletedNode("a", "30s", at), at)
}

// #53 The watch shows the renewal before the step does its own reads: what counts is the Lease of the proof.
func TestNoStepOfProofAfterRenewal(t *testing.T) {
	for name, step := range map[string]func(w *world, n *v1.Node, one *nodeTermination) error{
		"taint": func(w *world, n *v1.Node, one *nodeTermination) error {
			return w.markOutOfService(w.t.Context(), n, one)
		},
		"delete": func(w *world, n *v1.Node, one *nodeTermination) error {
			return w.deleteInstance(w.t.Context(), n, one)
		},
		"pods": func(w *world, n *v1.Node, one *nodeTermination) error {
			w.pods.result.Pods = node.Stuck
			_, err := w.drain(w.t.Context(), n, one, view(true))
			return err
		},
	} {
		for _, renewed := range []bool{true, false} {
			n := proven()
			inWorld(t, func(w *world) {
				one := w.begun(n)
				one.proof.given = true
				w.before("get", "nodes", func(clienttesting.Action) {
					if renewed {
						w.renew("a")
					}
				})
				err := step(w, n, one)
				<-time.After(time.Second)
				done := slices.Contains(w.machines.called(), "delete mock://a") || w.pods.removes() ||
					slices.ContainsFunc(w.client.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "patch" })
				if done == renewed || errors.Is(err, controller.ErrStaleCache) != renewed {
					w.t.Errorf("%s, renewed %v: done %v, %v", name, renewed, done, err)
				}
			}, n, leaseAt("a", time.Now()))
		}
	}
}

// #53 A webhook that keeps our taint on the Node does not keep the machine running.
func TestMachineThatCameBackIsStoppedThoughTaintStays(t *testing.T) {
	for _, ended := range []bool{true, false} {
		n := proven()
		inWorld(t, func(w *world) {
			one := w.begun(n)
			w.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, errors.New("refused")
			})
			state := node.State{Owner: node.Ours, Provider: node.Socket, Pods: node.Awaited, Instance: node.Running, Proof: node.Revoked,
				Deleting: true, Protected: true, Begun: true, Ended: ended, Marked: true}
			if d := node.Decide(state); d.Action != node.Unmark {
				w.t.Fatal(d)
			}
			if _, err := w.execute(w.t.Context(), n, one, &observation{state: state}, node.Decide(state)); err == nil {
				w.t.Error("the refusal is not told")
			}
			<-time.After(time.Second)
			if stopped := slices.Contains(w.machines.called(), "stop mock://a"); stopped != ended {
				w.t.Errorf("E has come: %v, stopped: %v", ended, stopped)
			}
		}, n, leaseAt("a", time.Now()))
	}
}

func view(proven bool) drain.View {
	v := drain.View{Drain: true}
	v.Proven = proven
	return v
}

// #42 Pods that come after the first were removed are not removed because of what was read then.
func TestPodsThatComeLaterAreVerifiedAnew(t *testing.T) {
	n := proven()
	inWorld(t, func(w *world) {
		one := w.begun(n)
		one.proof.given = true
		for _, pods := range []node.Pods{node.Stuck, node.NoPods} {
			w.pods.result.Pods = pods
			if _, err := w.drain(w.t.Context(), n, one, view(true)); err != nil {
				w.t.Fatal(err)
			}
		}
		w.renew("a")
		w.pods.views, w.pods.result.Pods = nil, node.Stuck
		if _, err := w.drain(w.t.Context(), n, one, view(true)); err == nil || w.pods.removes() {
			t.Errorf("%v, views %+v", err, w.pods.seen())
		}
	}, n, leaseAt("a", time.Now()))
}

// Some providers delete the disks that are attached to a machine. The cache of attachments may be old.
func TestMachineWithAttachedVolumeIsNotDeleted(t *testing.T) {
	reported := proven()
	reported.Status.VolumesAttached = []v1.AttachedVolume{{Name: "disk"}}
	volume := "disk"
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec: storagev1.VolumeAttachmentSpec{NodeName: "a",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
	another := attachment.DeepCopy()
	another.Name, another.Spec.NodeName = "two", "b"
	for name, tc := range map[string]struct {
		node    *v1.Node
		others  []runtime.Object
		deleted bool
	}{
		"the Node names a volume":          {node: reported},
		"an attachment that no cache has":  {node: proven(), others: []runtime.Object{another, attachment}},
		"a volume of another node":         {node: proven(), others: []runtime.Object{another}, deleted: true},
		"no volume is attached to a node ": {node: proven(), deleted: true},
	} {
		inWorld(t, func(w *world) {
			one := w.begun(tc.node)
			err := w.deleteInstance(w.t.Context(), tc.node, one)
			<-time.After(time.Second)
			deleted := slices.Contains(w.machines.called(), "delete mock://a")
			if deleted != tc.deleted || (err == nil) != deleted {
				t.Errorf("%s: deleted %v, %v", name, deleted, err)
			}
		}, append(tc.others, tc.node)...)
	}
}

// Caches may be a moment old after each detachment. If it lasts, the user is told why the machine stays.
func TestRefusedDeleteIsTold(t *testing.T) {
	reported := proven()
	reported.Status.VolumesAttached = []v1.AttachedVolume{{Name: "kubernetes.io/csi/disk"}}
	inWorld(t, func(w *world) {
		told := make(chan string, 10)
		w.reporter = controller.NewReporter(recorder(told))
		one := w.begun(reported)
		for range 11 {
			if err := w.deleteInstance(w.t.Context(), reported, one); !errors.Is(err, controller.ErrStaleCache) || len(told) > 0 {
				w.t.Errorf("%v, %d events", err, len(told))
			}
			<-time.After(patience / 11)
		}
		<-time.After(time.Second)
		if err := w.deleteInstance(w.t.Context(), reported, one); err == nil {
			w.t.Error("the machine is deleted")
		}
		expectTold(w.t, told, "DisksAttached", "The machine is not deleted", "kubernetes.io/csi/disk")
	}, reported)
}

// 300 nodes that end at once do not list all attachments 300 times, and no answer is older than its question.
func TestListsOfAttachmentsAreShared(t *testing.T) {
	inWorld(t, func(w *world) {
		lists := 0
		w.before("list", "volumeattachments", func(clienttesting.Action) {
			lists++
			<-time.After(time.Second)
		})
		done := make(chan error)
		for range 50 {
			go func() {
				<-time.After(time.Second / 2)
				_, err := w.attached.read(w.t.Context(), w.client)
				done <- err
			}()
		}
		if _, err := w.attached.read(w.t.Context(), w.client); err != nil {
			w.t.Fatal(err)
		}
		for range 50 {
			if err := <-done; err != nil {
				w.t.Fatal(err)
			}
		}
		if lists != 2 {
			t.Errorf("%d lists", lists)
		}
	})
}

// hangingReports are ConfigMaps that are answered when the context ends.
type hangingReports struct {
	corev1.ConfigMapInterface
	report *v1.ConfigMap
}

func (r hangingReports) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*v1.ConfigMap, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Second):
		return r.report, nil
	}
}

// A new leader finds a node at its deadline, and the answer to its report takes its time.
func TestStopWaitsForNoReport(t *testing.T) {
	at := time.Now().Add(-time.Hour)
	inWorld(t, func(w *world) {
		at := time.Now().Add(-time.Minute)
		n := withFirstAction(deletedNode("a", "30s", at), at)
		report := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "exeunt-system", Name: reportName(n.UID),
			CreationTimestamp: metav1.Now()},
			Data: map[string]string{termination.ReportKey: `{"uid":"uid-a","counts":{"evicted":3}}`}}
		if err := errors.Join(w.client.Tracker().Add(n), w.client.Tracker().Add(report)); err != nil {
			w.t.Fatal(err)
		}
		w.reports.client = hangingReports{w.reports.client, report}
		w.cached(n)
		began := time.Now()
		_ = w.follow(n, "a")
		synctest.Wait() // the provider has answered
		if err := w.Reconcile(w.t.Context(), "a"); err != nil {
			w.t.Fatal(err)
		}
		synctest.Wait()
		if waited := time.Since(began); waited > 0 || !slices.Contains(w.machines.called(), "stop mock://a") {
			w.t.Errorf("after %v: %v", waited, w.machines.called())
		}
		if len(w.pods.seen()) > 0 {
			w.t.Error("pods are counted before what an earlier leader counted")
		}
		<-time.After(2 * time.Second)
		err := w.Reconcile(w.t.Context(), "a")
		if err != nil || w.pods.earlier.Counts.Evicted != 3 || len(w.pods.seen()) == 0 {
			w.t.Errorf("%v, restored %+v, %d views", err, w.pods.earlier, len(w.pods.seen()))
		}
	}, leaseAt("a", at))
}

// ConfigMaps cannot be read for a while after a change of leaders. Pods wait for two seconds, the counts for as long as it
// takes: no report is written over them.
func TestCountsOfEarlierLeaderMayComeLate(t *testing.T) {
	at := time.Now().Add(-time.Hour)
	inWorld(t, func(w *world) {
		at := time.Now().Add(-time.Minute)
		n := withFirstAction(deletedNode("a", "1h", at), at)
		report := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "exeunt-system", Name: "node-termination-" + string(n.UID),
			CreationTimestamp: metav1.Now()},
			Data: map[string]string{termination.ReportKey: `{"uid":"uid-a","counts":{"evicted":3}}`}}
		if err := errors.Join(w.client.Tracker().Add(n), w.client.Tracker().Add(report)); err != nil {
			w.t.Fatal(err)
		}
		var written atomic.Int64
		var back atomic.Bool
		for _, verb := range []string{"create", "patch"} {
			w.before(verb, "configmaps", func(clienttesting.Action) { written.Add(1) })
		}
		w.client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !back.Load(), nil, errors.New("no leader")
		})
		w.cached(n)
		reconciledAfter := func(wait time.Duration) {
			<-time.After(wait)
			if err := w.Reconcile(w.t.Context(), "a"); err != nil {
				w.t.Error(err)
			}
		}
		reconciledAfter(0)
		reconciledAfter(readTimeout)
		if len(w.pods.seen()) == 0 {
			w.t.Error("pods wait for the report")
		}
		reconciledAfter(time.Minute)
		if written.Load() > 0 || w.pods.earlier.Counts.Evicted != 0 {
			w.t.Errorf("%d writes over what was not read; restored %+v", written.Load(), w.pods.earlier)
		}
		back.Store(true)
		reconciledAfter(time.Minute)
		<-time.After(time.Second)
		if w.pods.earlier.Counts.Evicted != 3 || written.Load() == 0 {
			w.t.Errorf("restored %+v, %d writes", w.pods.earlier, written.Load())
		}
	}, leaseAt("a", at))
}
