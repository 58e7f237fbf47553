package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// untilEnd is how long before E the nodes are deleted: all first actions are written before P.
func untilEnd(nodes int) time.Duration {
	return 20*time.Second + time.Duration(nodes)*50*time.Millisecond
}

// BenchmarkStop has b.N nodes reach E at once, each with a pod that nobody may delete, and a provider that takes 50 ms
// for each answer. It reports when the machines were off after E, these 50 ms included.
func BenchmarkStop(b *testing.B) {
	e := startBenchmark(b, longLeases, b.N)
	e.fill(e.Nodes, 1, stuck, grace(3600))
	e.serve(e.Nodes)
	e.keepPods(e.Nodes[0] + "-p0")
	e.fault(machines.Fault{Node: "*", Kind: machines.Slow, Seconds: 0.05})
	end := e.endBy(e.Nodes, untilEnd(b.N))
	e.removeAll(e.Nodes, e.removeNode)
	var late []time.Duration
	e.awaitList("all machines are off", func() bool {
		off := e.Events(machines.Event{Event: machines.PowerOff})
		late = nil
		for _, one := range off {
			late = append(late, one.Time.Sub(end))
		}
		return len(off) == b.N
	})
	p99 := quantile(0.99, late)
	if late[0] < 0 {
		b.Errorf("a machine was off %v before E", -late[0])
	}
	b.Logf("%d nodes: off from %v to %v after E", b.N, late[0], late[len(late)-1])
	b.ReportMetric(late[0].Seconds(), "s-first")
	b.ReportMetric(quantile(0.5, late).Seconds(), "s-p50")
	b.ReportMetric(p99.Seconds(), "s-p99")
}

// keepPods refuses each end of a pod, and waits until that of this one is.
func (e *ending) keepPods(pod string) {
	e.T.Helper()
	e.apply(keptPods)
	e.Until("the policy works", func() bool {
		return e.Client.CoreV1().Pods(e.Namespace).Delete(e.Ctx, pod,
			metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}) != nil
	})
}

const keptPods = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keep-pods}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods/eviction]}
  validations: [{expression: "false", message: the pods stay}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keep-pods}
spec: {policyName: keep-pods, validationActions: [Deny]}
`

// disksManifest has a pod with a disk for each replica, and all pods are created at once.
const disksManifest = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: NAMESPACE}
spec:
  serviceName: db
  podManagementPolicy: Parallel
  replicas: REPLICAS
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      nodeSelector: {fit: ""}
      containers: [{name: main, image: image, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: NAMESPACE, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// BenchmarkDiskAfterStop has b.N nodes reach E at once, each with a disk that stays mounted, because the pod of the
// driver is gone. Kubelets renew their Leases of 40 s until the machine is stopped. It reports the time until the disk
// is attached to another machine: from the end of its machine, and from the last renewal, which is up to 10 s earlier.
func BenchmarkDiskAfterStop(b *testing.B) {
	e := startBenchmark(b, longLeases, 2*b.N)
	from, to := e.Nodes[:b.N], e.Nodes[b.N:]
	e.fill(from, 1, func(p *v1.Pod) { p.Labels["app"] = machines.DriverApp })
	e.fitAll(from)
	parallel(b.N, 20, func(i int) { e.CreateDisk(fmt.Sprint("disk-", i)) })
	e.apply(strings.ReplaceAll(disksManifest, "REPLICAS", fmt.Sprint(b.N)))
	e.awaitReady("db", b.N)
	parallel(b.N, 20, func(i int) {
		e.deleteWithGrace(from[i]+"-p0", 0)
		e.AwaitEvent(machines.Event{Pod: e.Namespace + "/" + from[i] + "-p0", Event: machines.Exited})
	})
	e.move(from, to)
	e.serve(from)
	e.endBy(from, untilEnd(b.N))
	e.removeAll(from, e.removeNode)
	var moved map[string]time.Time
	e.awaitList("all disks are attached elsewhere", func() bool {
		moved = e.moved(from)
		return len(moved) == b.N
	})
	e.expectNever(machines.Event{Event: machines.TwoWriters})
	renewed := e.renewals()
	var took, silent []time.Duration
	for node, at := range moved {
		took = append(took, at.Sub(e.power(node).Time))
		silent = append(silent, at.Sub(renewed[node]))
	}
	b.Logf("%d nodes: attached %v after the end of the machine, %v after the last renewal", b.N, took, silent)
	b.ReportMetric(quantile(0.5, took).Seconds(), "s-p50")
	b.ReportMetric(quantile(1, took).Seconds(), "s-max")
	b.ReportMetric(quantile(1, silent).Seconds(), "s-after-renewal")
}

// moved returns when the disks of these nodes were attached to other ones.
func (e *ending) moved(from []string) map[string]time.Time {
	e.T.Helper()
	had, moved := map[string]string{}, map[string]time.Time{}
	for _, one := range e.Events(machines.Event{Event: machines.Attached}) {
		if slices.Contains(from, one.Node) {
			had[one.Volume] = one.Node
		} else {
			moved[had[one.Volume]] = one.Time
		}
	}
	return moved
}

// renewals returns when the Lease of each node was last renewed.
func (e *ending) renewals() map[string]time.Time {
	e.T.Helper()
	events, err := sandbox.ReadAudit(e.Plane.AuditLog)
	e.Must(err, "read audit log")
	last := map[string]time.Time{}
	for _, one := range events {
		if one.Resource == "leases" && one.Namespace == v1.NamespaceNodeLease && one.Verb == "patch" &&
			one.Time.After(last[one.Name]) {
			last[one.Name] = one.Time
		}
	}
	return last
}

// attachmentsPerNode is the number of disks of each node of [BenchmarkIdle].
const attachmentsPerNode = 5

// idle is how long [BenchmarkIdle] watches.
const idle = 30 * time.Second

// BenchmarkIdle has b.N labeled nodes with five attachments each, and ends none of them. It reports the memory of the
// program after 30 s, and the requests in that time but for those of its own Lease.
func BenchmarkIdle(b *testing.B) {
	e := startBenchmark(b, longLeases, b.N, "--leader-elect=true")
	e.serve(e.Nodes)
	count := b.N * attachmentsPerNode
	parallel(count, 50, func(i int) { e.attach(e.Nodes[i/attachmentsPerNode], fmt.Sprint("disk-", i)) })
	e.awaitList("all disks are attached", func() bool {
		return len(e.Events(machines.Event{Event: machines.Attached})) == count
	})
	sandbox.Pause(e.Ctx, idle/3) // what has happened is worked off
	began := time.Now()
	sandbox.Pause(e.Ctx, idle)
	sent := e.requestsSince(began).only(func(one sandbox.Event) bool { return one.Resource != "leases" })
	b.Logf("%d nodes: requests %v", b.N, sent)
	b.ReportMetric(e.memory("VmRSS"), "MB")
	b.ReportMetric(e.memory("RssAnon"), "MB-anonymous") // the rest are pages of its file, which Kubernetes does not count
	b.ReportMetric(e.memory("VmHWM"), "MB-peak")
	b.ReportMetric(float64(len(sent)), "requests")
}

// attach attaches a new disk to the node.
func (e *ending) attach(node, name string) {
	e.T.Helper()
	disk := e.CreateDisk(name)
	_, err := e.Client.StorageV1().VolumeAttachments().Create(e.Ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: disk},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: machines.DriverName, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &disk}},
	}, metav1.CreateOptions{})
	e.Must(err, "create attachment")
}
