package nodes

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestMachinesRunPodsAndDisks(t *testing.T) {
	c := join(t, 3)
	c.deployment("web", 3, `cloudmock.exeunt.io/exit-after: 1s`)
	used := map[string]bool{}
	for _, pod := range c.awaitReady("web", 3) {
		used[pod.Spec.NodeName] = true
	}
	if len(used) != 3 {
		t.Errorf("the pods of the Deployment run on %v, want three nodes", used)
	}

	handle := c.CreateDisk("disk")
	c.statefulSet("db", 1)
	db := c.awaitReady("db", 1)[0]
	pod, disk := machines.Event{UID: db.UID}, machines.Event{Volume: handle}
	if got, want := c.Story(disk), "attached mounted"; got != want {
		t.Errorf("disk: %s, want %s", got, want)
	}

	c.scale("db", 0)
	c.AwaitEvent(machines.Event{Volume: handle, Event: machines.Detached})
	if got, want := c.Story(disk), "attached mounted unmounted detached"; got != want {
		t.Errorf("disk: %s, want %s", got, want)
	}
	if got, want := c.Story(pod), "mounted started sigterm exited unmounted"; got != want {
		t.Errorf("pod with the disk: %s, want %s", got, want)
	}
}

func TestGraceIsCountedFromDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		graces     []int64 // of one deletion after the other
		want       time.Duration
		killed     bool
	}{
		"ends by itself":    {`cloudmock.exeunt.io/exit-after: 2s`, []int64{30}, 2 * time.Second, false},
		"is killed":         {`cloudmock.exeunt.io/ignore-sigterm: "true"`, []int64{3}, 3 * time.Second, true},
		"is shortened":      {`cloudmock.exeunt.io/ignore-sigterm: "true"`, []int64{30, 4}, 4 * time.Second, true},
		"is not lengthened": {`cloudmock.exeunt.io/ignore-sigterm: "true"`, []int64{3, 700}, 3 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := join(t, 1)
			c.deployment("web", 1, tc.annotation)
			pod := c.awaitReady("web", 1)[0]
			var term machines.Event
			for _, grace := range tc.graces {
				c.deleteWithGrace(pod.Name, grace)
				term = c.AwaitEvent(machines.Event{UID: pod.UID, Event: machines.Sigterm})
			}
			exit := c.AwaitEvent(machines.Event{UID: pod.UID, Event: machines.Exited})
			if took := harness.Elapsed(term, exit); took < tc.want || took > tc.want+2*time.Second {
				t.Errorf("the pod exited %s after SIGTERM, want %s", took, tc.want)
			}
			want := "started sigterm exited"
			if tc.killed {
				want = "started sigterm sigkill exited"
			}
			if got := c.Story(machines.Event{UID: pod.UID}); got != want {
				t.Errorf("pod: %s, want %s", got, want)
			}
			c.Until("the pod is gone", func() bool {
				_, err := c.Client.CoreV1().Pods(c.Namespace).Get(c.Ctx, pod.Name, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
		})
	}
}

func TestStoppedMachineEndsPodsWithoutSignal(t *testing.T) {
	c := join(t, 2)
	c.deployment("web", 2)
	pod := c.awaitReady("web", 2)[0]
	node := pod.Spec.NodeName
	state, err := c.Instances().Stop(c.Ctx, c.Instance(node))
	if err != nil || state != instances.Off {
		t.Fatalf("stop answers %q, %v; want Off", state, err)
	}
	if got, want := c.Story(machines.Event{UID: pod.UID}), "started"; got != want {
		t.Errorf("pod: %s, want %s", got, want)
	}
	c.AwaitEvent(machines.Event{Node: node, Event: machines.PowerOff})
	first := c.lease(node)
	c.Until("the node is not ready", func() bool { return !c.IsReady(node) })
	if last := c.lease(node); last != first {
		t.Errorf("the Lease of a machine without power was renewed at %s, last before at %s", last, first)
	}
	if state, err = c.Instances().Delete(c.Ctx, c.Instance(node)); err != nil || state != instances.Gone {
		t.Errorf("delete answers %q, %v; want Gone", state, err)
	}
}

// outOfService sets the taint with which an administrator says that the machine of a node is off.
func (c cloud) outOfService(node string) {
	c.T.Helper()
	_, err := c.Client.CoreV1().Nodes().Patch(c.Ctx, node, types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"spec":{"taints":[{"key":%q,"value":"nodeshutdown","effect":"NoExecute"}]}}`, v1.TaintNodeOutOfService),
		metav1.PatchOptions{})
	c.Must(err, "set taint")
}

// The real attach-detach controller detaches by force, and cloudmock knows whether the pod still writes.
func TestForcedDetachOfRunningMachineHasTwoWriters(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("machine is off: %t", off), func(t *testing.T) {
			c := join(t, 2)
			disk := c.CreateDisk("disk")
			c.statefulSet("db", 1)
			first := c.awaitReady("db", 1)[0]
			node := first.Spec.NodeName
			c.SetFaults(machines.Fault{Node: node, Kind: machines.KubeletDead})
			if off {
				if _, err := c.Instances().Stop(c.Ctx, c.Instance(node)); err != nil {
					t.Fatal(err)
				}
			}
			c.Until("the node is not ready", func() bool { return !c.IsReady(node) })
			c.outOfService(node)
			c.Until("the pod runs on the other node", func() bool {
				ready := c.awaitReady("db", 1)[0]
				return ready.UID != first.UID && ready.Spec.NodeName != node
			})
			writers := c.Events(machines.Event{Volume: disk, Event: machines.TwoWriters})
			if (len(writers) == 0) != off {
				t.Errorf("two writers: %+v", writers)
			}
			for _, e := range writers {
				if e.UID != first.UID || e.Node != node {
					t.Errorf("two writers names %s on %s, want the first pod", e.Pod, e.Node)
				}
			}
		})
	}
}

// A test that deletes a pod behind a partition must not depend on when the machines read their faults.
func TestFaultsAreInForceAtOnce(t *testing.T) {
	c := join(t, 1)
	i := c.Instance(c.Nodes[0])
	for range 5 {
		c.SetFaults(machines.Fault{Node: c.Nodes[0], Kind: machines.Foreign})
		if state, err := c.Instances().Get(c.Ctx, i); err != nil || state != instances.Foreign {
			t.Errorf("with the fault: %s, %v", state, err)
		}
		c.SetFaults()
		if state, err := c.Instances().Get(c.Ctx, i); err != nil || state != instances.Running {
			t.Errorf("without: %s, %v", state, err)
		}
	}
}

func TestKubeletThatIsCutOffGoesOnLater(t *testing.T) {
	c := join(t, 1)
	c.deployment("web", 1)
	pod := c.awaitReady("web", 1)[0]
	node := pod.Spec.NodeName
	c.SetFaults(machines.Fault{Node: node, Kind: machines.Partition})
	c.Until("the node is not ready", func() bool { return !c.IsReady(node) })
	c.deleteWithGrace(pod.Name, 30)
	if got, want := c.Story(machines.Event{UID: pod.UID}), "started"; got != want {
		t.Errorf("pod behind a partition: %s, want %s", got, want)
	}
	c.SetFaults()
	c.AwaitEvent(machines.Event{UID: pod.UID, Event: machines.Exited})
	c.Until("the node is ready", func() bool { return c.IsReady(node) })
	c.awaitReady("web", 1)
}

func TestMachineThatComesBackRunsItsPodsAgain(t *testing.T) {
	c := join(t, 1)
	c.deployment("web", 1)
	pod := c.awaitReady("web", 1)[0]
	node := c.Node(pod.Spec.NodeName)
	c.SetFaults(machines.Fault{Node: node.Name, Kind: machines.ComesBack, Seconds: 15})
	c.Until("the machine is off", func() bool {
		state, err := c.Instances().Stop(c.Ctx, c.Instance(node.Name))
		c.Must(err, "stop machine")
		return state == instances.Off
	})
	c.Until("the node is not ready", func() bool { return !c.IsReady(node.Name) })
	c.Until("the node is ready", func() bool { return c.IsReady(node.Name) })
	if got := c.Node(node.Name).UID; got != node.UID {
		t.Errorf("the machine came back with another Node")
	}
	c.awaitReady("web", 1)
	if got, want := c.Story(machines.Event{UID: pod.UID}), "started started"; got != want {
		t.Errorf("pod: %s, want %s", got, want)
	}
}

var daemonSetJobAndBudget = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: NAMESPACE}
spec:` + podTemplate("agent") + `
---
apiVersion: batch/v1
kind: Job
metadata: {name: task, namespace: NAMESPACE}
spec:
  template:
    metadata:
      annotations: {cloudmock.exeunt.io/finish-after: 1s}
    spec:
      nodeSelector: {e2e: NAMESPACE}
      restartPolicy: Never
      containers: [{name: main, image: image}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: NAMESPACE}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: web}}
`

func TestPodsOfAllKindsRunOnMachines(t *testing.T) {
	c := join(t, 2)
	c.apply(daemonSetJobAndBudget)
	c.deployment("web", 2, `cloudmock.exeunt.io/ready-after: 2s`)
	c.awaitReady("agent", 2)
	pods := c.awaitReady("web", 2)
	c.Until("the Job is complete", func() bool {
		job, err := c.Client.BatchV1().Jobs(c.Namespace).Get(c.Ctx, "task", metav1.GetOptions{})
		c.Must(err, "read Job")
		return job.Status.Succeeded == 1
	})
	c.Until("the budget has room", func() bool { return c.evict(pods[0].Name) == nil })
	if err := c.evict(pods[1].Name); !apierrors.IsTooManyRequests(err) {
		t.Errorf("second eviction: %v, want a refusal by the budget", err)
	}
	c.awaitReady("web", 2)
	c.Until("the budget has room again", func() bool { return c.evict(pods[1].Name) == nil })

	node := c.Nodes[0]
	_, err := c.Client.CoreV1().Nodes().Patch(c.Ctx, node, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"cloudmock.exeunt.io/static-pods":"static"}}}`), metav1.PatchOptions{})
	c.Must(err, "annotate node")
	first := c.awaitMirror("static-"+node, "")
	c.Must(c.Client.CoreV1().Pods(metav1.NamespaceSystem).Delete(c.Ctx, "static-"+node, metav1.DeleteOptions{}), "delete")
	c.awaitMirror("static-"+node, first)
}

// evict asks for the eviction of a pod.
func (c cloud) evict(name string) error {
	return c.Client.PolicyV1().Evictions(c.Namespace).Evict(c.Ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name}})
}

// awaitMirror waits until a mirror pod with another UID runs, and returns its UID.
func (c cloud) awaitMirror(name string, other types.UID) (uid types.UID) {
	c.T.Helper()
	c.Until("a mirror pod runs", func() bool {
		pod, err := c.Client.CoreV1().Pods(metav1.NamespaceSystem).Get(c.Ctx, name, metav1.GetOptions{})
		if err == nil {
			uid = pod.UID
		}
		return err == nil && uid != other && pod.Status.Phase == v1.PodRunning
	})
	return uid
}
