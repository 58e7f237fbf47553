package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/nodeend"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// cell is a node that ends.
type cell struct {
	*comparison
	situation
	way  way
	name string
	node string

	ending  nodeend.Case
	outcome nodeend.Outcome
}

// run creates the pod of the cell on its node, ends the node, and watches.
func (c *cell) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{c.prepare, c.serve, c.disturb, c.end, c.watch} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("%s, %s: %w", c.situation.name, c.way, err)
		}
	}
	return nil
}

// prepare creates the pod on the node, and then makes the spare node fit.
func (c *cell) prepare(ctx context.Context) error {
	if err := c.setLabel(ctx, c.node, c.name, ""); err != nil {
		return err
	}
	err := sandbox.ApplyYAML(ctx, c.Plane.RESTConfig(), []byte(c.manifest()))
	if err != nil {
		return err
	}
	if err := c.await(ctx, "the pod is ready", c.findPod); err != nil {
		return err
	}
	return c.setLabel(ctx, c.spare, c.name, "")
}

// findPod reports whether the pods are ready, and keeps that which is measured.
func (c *cell) findPod(ctx context.Context) (bool, error) {
	list, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "cell=" + c.name})
	if err != nil {
		return false, err
	}
	c.ending.Pods = nil
	for _, pod := range list.Items {
		if !isReady(pod) {
			return false, nil
		}
		if pod.Labels["app"] == machines.DriverApp {
			continue
		}
		measured := nodeend.PodFrom(&pod)
		if c.budget {
			measured.Guard = "budget"
		}
		c.ending.Pods = append(c.ending.Pods, measured)
	}
	want := 1
	if c.driver {
		want = 2
	}
	return len(list.Items) == want && len(c.ending.Pods) == 1, nil
}

// serve labels the node, if ours ends it, or makes it one of Karpenter.
func (c *cell) serve(ctx context.Context) error {
	switch c.way {
	case byKarpenter:
		if err := c.karpenter.serve(ctx, c.node, cellPeriod.String()); err != nil {
			return err
		}
		return c.await(ctx, "Karpenter serves the node", func(ctx context.Context) (bool, error) {
			return c.karpenter.isServed(ctx, c.node)
		})
	case byOurs:
		if err := c.setLabel(ctx, c.node, termination.Label, cellPeriod.String()); err != nil {
			return err
		}
		return c.await(ctx, "the node is served", func(ctx context.Context) (bool, error) {
			node, err := c.Client.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
			return err == nil && termination.Protected(node) && node.Annotations[termination.InstanceAnnotation] != "", err
		})
	case byDrain, byDelete:
	}
	return nil
}

func (c *cell) disturb(ctx context.Context) error {
	if c.before == nil {
		return nil
	}
	return c.before(c, ctx)
}

// deletePod deletes the pod with an hour of grace.
func (c *cell) deletePod(ctx context.Context) error {
	_, name, _ := strings.Cut(c.ending.Pods[0].Name, "/")
	hour := int64(3600)
	c.ending.Pods[0].Begun, c.ending.Pods[0].Grace = true, hour
	return c.Client.CoreV1().Pods(c.Namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &hour})
}

// extendOther gives a NodeClaim of Karpenter a period that its pattern allows. The spare node of ours has it as its label.
func (c *cell) extendOther(ctx context.Context) error {
	if c.way != byKarpenter {
		return nil
	}
	return c.karpenter.serve(ctx, c.spare, "9999999h")
}

// spoilDeadline writes a deadline that no program can read: on the Node of ours, or on the NodeClaim of Karpenter.
func (c *cell) spoilDeadline(ctx context.Context) error {
	body := func(key string) []byte { return fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"soon"}}}`, key) }
	var err error
	switch c.way {
	case byKarpenter:
		_, err = dynamic.NewForConfigOrDie(c.Plane.RESTConfig()).Resource(nodeClaims).Patch(ctx, c.node,
			types.MergePatchType, body(termination.ClaimTimestampAnnotation), metav1.PatchOptions{})
	case byOurs:
		_, err = c.Client.CoreV1().Nodes().Patch(ctx, c.node, types.MergePatchType, body(termination.TimestampAnnotation),
			metav1.PatchOptions{})
	case byDrain, byDelete: // kubectl has a timeout, or none
	}
	return err
}

// killKubelet ends the kubelet, and leaves machine and pod. It waits until nothing can reach the pod any more.
func (c *cell) killKubelet(ctx context.Context) error {
	c.mu.Lock()
	c.ending.Silent = []string{c.node}
	c.dead = append(c.dead, machines.Fault{Node: c.node, Kind: machines.KubeletDead})
	err := c.Cloud.SetFaults(ctx, c.dead...)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.await(ctx, "the kubelet is silent", func(ctx context.Context) (bool, error) {
		lease, err := c.Client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(ctx, c.node, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		period := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second / 4
		return time.Since(lease.Spec.RenewTime.Time) > 2*period, nil
	})
}

// end ends the node, as the way does.
func (c *cell) end(ctx context.Context) error {
	c.ending.Requested, c.ending.Period = time.Now(), cellPeriod
	if c.disk {
		c.ending.Disks = []string{c.name}
	}
	switch {
	case c.way == byDrain && c.killed: // nobody goes on
		limited, cancel := context.WithTimeout(ctx, killAfter)
		defer cancel()
		if err := nodeend.Drain(limited, c.Client, c.node, cellPeriod); limited.Err() == nil {
			return fmt.Errorf("the drain ended before kubectl was killed: %w", err)
		}
		return nil
	case c.way == byDrain:
		if err := nodeend.Drain(ctx, c.Client, c.node, cellPeriod); err != nil {
			fmt.Fprintf(c.T.Output(), "%s: kubectl drain: %v\n", c.situation.name, err)
		}
	}
	err := c.Client.CoreV1().Nodes().Delete(ctx, c.node, metav1.DeleteOptions{})
	if err == nil && c.killed && c.way != byDelete {
		err = c.killLeader(ctx)
	}
	return err
}

// killLeader kills node-terminator or Karpenter, and starts it again.
func (c *cell) killLeader(ctx context.Context) error {
	sandbox.Pause(ctx, killAfter)
	if c.way == byKarpenter {
		return c.karpenter.restart(ctx)
	}
	if err := c.terminator.Kill(); err != nil {
		return err
	}
	c.begin()
	return nil
}

// watch waits until pod and disk are free, or for as long as anything could still happen.
func (c *cell) watch(ctx context.Context) error {
	for time.Since(c.ending.Requested) < cellWatch {
		events, err := c.Cloud.Events()
		if err != nil {
			return err
		}
		c.outcome = nodeend.Measure(c.ending, events)
		if !c.outcome.Running && c.outcome.Hanging == 0 && (c.way != byOurs || c.isNodeGone(ctx)) {
			return nil
		}
		sandbox.Pause(ctx, time.Second)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (c *cell) isNodeGone(ctx context.Context) bool {
	_, err := c.Client.CoreV1().Nodes().Get(ctx, c.node, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func (c *cell) await(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	limited, cancel := context.WithTimeoutCause(ctx, harness.Timeout, fmt.Errorf("not within %s", harness.Timeout))
	defer cancel()
	if err := wait.PollUntilContextCancel(limited, 200*time.Millisecond, true, holds); err != nil {
		return fmt.Errorf("wait until %s: %w", what, errors.Join(err, context.Cause(limited)))
	}
	return nil
}

func (c *cell) setLabel(ctx context.Context, node, key, value string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{key: value}}})
	if err == nil {
		_, err = c.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, body, metav1.PatchOptions{})
	}
	return err
}

// wrong names what is wrong with how the node ended.
func (c *cell) wrong() []string {
	var wrong []string
	for _, is := range []struct {
		bad  bool
		name string
	}{
		{len(c.outcome.CutInTime) > 0, "a pod was cut that had time"},
		{c.isShort(), "a pod got less grace than there was time for"},
		{c.outcome.Early > 0, "a pod ended early against what guards it"},
		{c.outcome.Running, "a pod runs on"},
		{c.outcome.Overrun > 1500*time.Millisecond, "a pod ran past the deadline"},
		{c.outcome.Hanging > 0, "the disk hangs"},
		{c.outcome.TwoWriters > 0, "two writers"},
	} {
		if is.bad {
			wrong = append(wrong, is.name)
		}
	}
	return wrong
}

// String returns the outcome as the table has it.
func (c *cell) String() string {
	o := c.outcome
	return fmt.Sprintf("%s / %s / %s / %s / %d", o.Graces[0], o.Forced(), o.Late(),
		o.Disk(cellWatch, len(c.ending.Disks)), o.TwoWriters)
}

// isShort reports whether the pod was killed before the time that there was. A pod that somebody deleted before is not
// measured, nor one whose kubelet was dead.
func (c *cell) isShort() bool {
	pod, grace := c.ending.Pods[0], c.outcome.Graces[0]
	promised := min(time.Duration(min(pod.Grace, 3600))*time.Second, cellPeriod-5*time.Second)
	return grace.End >= nodeend.Killed && !pod.Begun && !slices.Contains(c.ending.Silent, pod.Node) &&
		grace.Given < promised-3*time.Second
}

// The manifests of a cell. CELL is its name, MORE is more of the kind, and MOUNTS more of the container.
const (
	cellPods = `
apiVersion: apps/v1
kind: KIND
metadata: {name: CELL, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {cell: CELL, app: app}}MORE
  template:
    metadata: {labels: {cell: CELL, app: app}, annotations: {ANNOTATIONS}}
    spec:
      terminationGracePeriodSeconds: GRACE
      nodeSelector: {CELL: ""}
      containers: [{name: main, image: appMOUNTS}]
`
	cellClaims = `
  serviceName: db
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: CELL, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}`
	cellMounts = ", volumeMounts: [{name: data, mountPath: /data}]"
	cellDisk   = `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: CELL}
spec:
  persistentVolumeReclaimPolicy: Retain
  storageClassName: CELL
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Mi}
  claimRef: {namespace: NAMESPACE, name: data-CELL-0}
  csi: {driver: disk.cloudmock.exeunt.io, volumeHandle: CELL}
`
	cellBudget = `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: CELL, namespace: NAMESPACE}
spec: {maxUnavailable: 0, selector: {matchLabels: {cell: CELL, app: app}}}
`
	cellDriver = `---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: CELL-driver, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {cell: CELL, app: cloudmock-driver}}
  template:
    metadata: {labels: {cell: CELL, app: cloudmock-driver}}
    spec:
      nodeSelector: {CELL: ""}
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: driver}]
`
)

// manifest returns what runs on the node.
func (c *cell) manifest() string {
	text, kind, more, mounts := cellPods, "Deployment", "", ""
	if c.disk {
		text, kind, more, mounts = text+cellDisk, "StatefulSet", cellClaims, cellMounts
	}
	if c.budget {
		text += cellBudget
	}
	if c.driver {
		text += cellDriver
	}
	text = strings.NewReplacer("KIND", kind, "MORE", more, "MOUNTS", mounts, "GRACE", fmt.Sprint(c.grace),
		"ANNOTATIONS", strings.Join(c.annotations, ", ")).Replace(text)
	return strings.NewReplacer("CELL", c.name, "NAMESPACE", c.Namespace).Replace(text)
}
