package nodes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestRowsWithSocket(t *testing.T) {
	e := startEnding(t, 24, "--instances=socket", "--instances-socket=SOCKET")
	rows(t, e, map[string]func(*testing.T, *ending){
		"#02 the deadline never moves later":         deadlineMovesEarlierOnly,
		"#04 no time at all":                         noTime,
		"#41 a disk of a DaemonSet's pod":            diskOfDaemon,
		"#41 an inline volume":                       inlineVolume,
		"#42 Stop, proof, pods, disks, Delete":       stoppedAtDeadline,
		"#44 the detachment fails":                   detachFails,
		"#50 drained and deleted":                    drainedAndDeleted,
		"#51 turned off by others":                   turnedOffByOthers,
		"#52 a machine that was never seen":          neverSeen,
		"#53 a machine that comes back":              comesBack,
		"#54 Stop fails at first":                    stopFails,
		"#57 a foreign machine":                      foreignMachine,
		"#57 a shared machine":                       sharedMachine,
		"#58 the finalizer is stripped":              finalizerStripped,
		"#72 a webhook refuses the release":          releaseRefused,
		"a provider that says Off of a running node": lyingProvider,
		"a webhook refuses each write of the Node":   writesRefused,
		"a dead kubelet":                             deadKubelet,
	})
	if twice := e.Events(machines.Event{Event: machines.TwoWriters}); len(twice) > 0 {
		t.Errorf("two writers: %+v", twice)
	}
}

// withDisk gives the pod the disk.
func (e *ending) withDisk(name string) func(*v1.Pod) {
	e.T.Helper()
	disk := e.CreateDisk(name)
	_, err := e.Client.CoreV1().PersistentVolumeClaims(e.Namespace).Create(e.Ctx, &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(e.Namespace), VolumeName: disk,
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: oneMi}}},
	}, metav1.CreateOptions{})
	e.Must(err, "create claim")
	e.Until("the claim is bound", func() bool {
		claim, err := e.Client.CoreV1().PersistentVolumeClaims(e.Namespace).Get(e.Ctx, name, metav1.GetOptions{})
		e.Must(err, "read claim")
		return claim.Status.Phase == v1.ClaimBound
	})
	return func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
}

// disk returns the handle of the disk of [ending.withDisk].
func (e *ending) disk(name string) string { return e.Namespace + "-" + name }

// seen waits until the Node says that the provider knew its machine.
func (e *ending) seen(name string) {
	e.T.Helper()
	e.Until("the machine of "+name+" was seen", func() bool {
		return e.node(name).Annotations[termination.InstanceAnnotation] != ""
	})
}

// power returns when the machine was turned off first.
func (e *ending) power(node string) machines.Event {
	e.T.Helper()
	return e.AwaitEvent(machines.Event{Node: node, Event: machines.PowerOff})
}

// expectNever fails the test if something like this has happened.
func (e *ending) expectNever(match machines.Event) {
	e.T.Helper()
	if events := e.Events(match); len(events) > 0 {
		e.T.Errorf("%+v", events)
	}
}

// unmarked fails the test if the node has the taint out-of-service.
func (e *ending) unmarked(name string) {
	e.T.Helper()
	if ours, others := termination.OutOfService(e.node(name)); ours || others {
		e.T.Error("the node is out of service")
	}
}

func stoppedAtDeadline(t *testing.T, e *ending) {
	name := e.take("14s")
	e.seen(name)
	pod := e.pod(name, "db", stuck, grace(3600), e.withDisk(name))
	uid := e.node(name).UID
	e.fault(machines.Fault{Node: name, Kind: machines.Partition})
	e.delete(name)
	end := e.node(name).DeletionTimestamp.Add(14 * time.Second)
	off := e.expectStop(name, end)
	e.kept(pod)
	detached := e.AwaitEvent(machines.Event{Volume: e.disk(name), Event: machines.Detached})
	if took := harness.Elapsed(off, detached); took > 10*time.Second || took < 0 {
		t.Errorf("the disk was detached %v after the machine was off", took)
	}
	e.awaitGone(name)
	if now := e.getPod(pod.Name); now != nil {
		t.Errorf("the pod is left: %v", now.DeletionTimestamp)
	}
	report := e.awaitPhase(uid, termination.PhaseEnded)
	if report.Counts.Removed+report.Counts.CutShort+report.Counts.Deleted == 0 {
		t.Errorf("the report does not count the pod: %+v", report)
	}
}

func drainedAndDeleted(t *testing.T, e *ending) {
	name := e.take("15m")
	e.seen(name)
	e.pod(name, "web")
	i := e.Instance(name)
	e.delete(name)
	e.awaitGone(name)
	if state, err := e.Instances().Get(e.Ctx, i); err != nil || state != instances.Gone {
		t.Errorf("the machine is %s, %v", state, err)
	}
}

func turnedOffByOthers(t *testing.T, e *ending) {
	name := e.take("15m")
	e.seen(name)
	pod := e.pod(name, "db", stuck, grace(600), e.withDisk(name))
	e.delete(name)
	e.fault(machines.Fault{Node: name, Kind: machines.PoweredOff})
	e.power(name)
	e.AwaitEvent(machines.Event{Volume: e.disk(name), Event: machines.Detached})
	e.awaitGone(name)
	if e.getPod(pod.Name) != nil {
		t.Error("the pod is left")
	}
}

func neverSeen(t *testing.T, e *ending) {
	name := e.Namespace + "-stranger"
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{termination.Label: "5s"}},
		Spec: v1.NodeSpec{ProviderID: "mock://another-account"}}
	_, err := e.Client.CoreV1().Nodes().Create(e.Ctx, node, metav1.CreateOptions{})
	e.Must(err, "create node")
	e.Until("the node has the finalizer", func() bool { return termination.Protected(e.node(name)) })
	e.bindPod(name, "db")
	e.delete(name)
	e.awaitNodeEvent(name, "InstanceUnknown")
	e.unmarked(name)
	if e.getPod(name+"-db") == nil {
		t.Error("the pod was removed without a proof")
	}
	e.patch(name, `{"metadata":{"finalizers":null}}`)
	e.awaitGone(name)
}

func comesBack(_ *testing.T, e *ending) {
	name := e.take("12s")
	e.seen(name)
	e.pod(name, "db", stuck, grace(3600), e.withDisk(name))
	back := []machines.Fault{{Node: name, Kind: machines.DetachFails}, {Node: name, Kind: machines.ComesBack, Seconds: 8}}
	e.fault(append(back, machines.Fault{Node: name, Kind: machines.Partition})...)
	e.delete(name)
	e.Until("the node is out of service", func() bool { ours, _ := termination.OutOfService(e.node(name)); return ours })
	e.fault(back...)
	e.awaitNodeEvent(name, "InstanceCameBack")
	e.Until("the taint is off", func() bool { ours, _ := termination.OutOfService(e.node(name)); return !ours })
	e.fault(machines.Fault{Node: name, Kind: machines.DetachFails})
	e.Until("the machine is stopped again", func() bool {
		return len(e.Events(machines.Event{Node: name, Event: machines.PowerOff})) > 1
	})
	e.fault(machines.Fault{Node: name})
	e.awaitGone(name)
}

func stopFails(_ *testing.T, e *ending) {
	name := e.take("8s")
	e.seen(name)
	pod := e.pod(name, "stuck", stuck, grace(3600))
	e.fault(machines.Fault{Node: name, Kind: machines.Partition}, machines.Fault{Node: name, Kind: machines.StopFails})
	e.delete(name)
	end := e.node(name).DeletionTimestamp.Add(10 * time.Second)
	e.Until("E has passed", func() bool { return time.Now().After(end) })
	e.unmarked(name)
	e.kept(pod)
	e.fault(machines.Fault{Node: name})
	e.awaitGone(name)
}

func detachFails(t *testing.T, e *ending) {
	name := e.take("8s")
	e.seen(name)
	e.pod(name, "db", stuck, grace(3600), e.withDisk(name))
	i := e.Instance(name)
	e.fault(machines.Fault{Node: name, Kind: machines.DetachFails})
	e.delete(name)
	e.power(name)
	e.Until("the detachment began", func() bool {
		all, err := e.Client.StorageV1().VolumeAttachments().List(e.Ctx, metav1.ListOptions{})
		e.Must(err, "list attachments")
		for _, a := range all.Items {
			if a.Spec.NodeName == name && a.DeletionTimestamp != nil {
				return true
			}
		}
		return false
	})
	if state, err := e.Instances().Get(e.Ctx, i); err != nil || state != instances.Off {
		t.Errorf("the machine is %s, %v; it was deleted with its disk attached", state, err)
	}
	e.fault(machines.Fault{Node: name})
	e.awaitGone(name)
}

func foreignMachine(_ *testing.T, e *ending) {
	name := e.take("6s")
	e.pod(name, "stuck", stuck, grace(3600))
	e.fault(machines.Fault{Node: name, Kind: machines.Partition}, machines.Fault{Node: name, Kind: machines.Foreign})
	e.delete(name)
	e.awaitNodeEvent(name, "InstanceForeign")
	e.unmarked(name)
	e.expectNever(machines.Event{Node: name, Event: machines.PowerOff})
	e.fault(machines.Fault{Node: name, Kind: machines.Partition})
	e.awaitGone(name)
}

func sharedMachine(_ *testing.T, e *ending) {
	name := e.take("6s")
	e.seen(name)
	e.pod(name, "stuck", stuck, grace(3600))
	copycat := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace + "-copycat"},
		Spec: v1.NodeSpec{ProviderID: e.node(name).Spec.ProviderID}}
	_, err := e.Client.CoreV1().Nodes().Create(e.Ctx, copycat, metav1.CreateOptions{})
	e.Must(err, "create node")
	e.fault(machines.Fault{Node: name, Kind: machines.Partition})
	e.delete(name)
	e.awaitNodeEvent(name, "InstanceShared")
	e.unmarked(name)
	e.expectNever(machines.Event{Node: name, Event: machines.PowerOff})
	e.delete(copycat.Name)
	e.awaitGone(name)
	e.power(name)
}

func finalizerStripped(_ *testing.T, e *ending) {
	name := e.take("8s")
	e.seen(name)
	e.pod(name, "stuck", stuck, grace(3600))
	uid := e.node(name).UID
	e.patch(name, `{"metadata":{"finalizers":["`+termination.Finalizer+`","example.com/other"]}}`)
	e.fault(machines.Fault{Node: name, Kind: machines.Partition})
	e.delete(name)
	e.Until("the first action is written", func() bool {
		return !termination.FirstAction(e.node(name), time.Time{}).IsZero()
	})
	end := e.node(name).DeletionTimestamp.Add(10 * time.Second)
	e.patch(name, `{"metadata":{"finalizers":["example.com/other"]}}`)
	e.awaitNodeEvent(name, "Abandoned")
	e.Until("E has passed", func() bool { return time.Now().After(end) })
	e.expectNever(machines.Event{Node: name, Event: machines.PowerOff})
	e.unmarked(name)
	e.awaitPhase(uid, termination.PhaseAbandoned)
	e.patch(name, `{"metadata":{"finalizers":null}}`)
	e.awaitGone(name)
}

func releaseRefused(t *testing.T, e *ending) {
	name := e.take("15m")
	policy := strings.ReplaceAll(refusing, "NODE", name)
	e.Must(sandbox.ApplyYAML(e.Ctx, e.Plane.RESTConfig(), []byte(policy)), "apply policy")
	e.delete(name)
	if message := e.awaitNodeEvent(name, "WriteRefused"); !strings.Contains(message, "keep-"+name) {
		t.Errorf("event %q", message)
	}
	e.Must(e.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(e.Ctx, "keep-"+name,
		metav1.DeleteOptions{}), "delete binding")
	e.awaitGone(name)
}

// refusing keeps our finalizer on a node.
const refusing = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keep-NODE}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes]}]
  validations:
  - expression: >-
      object.metadata.name != 'NODE' || !has(oldObject.metadata.finalizers) || has(object.metadata.finalizers)
    message: the finalizer stays
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keep-NODE}
spec: {policyName: keep-NODE, validationActions: [Deny]}
`

// writesRefused has no first action in the API: the machine is stopped at E all the same.
func writesRefused(t *testing.T, e *ending) {
	name := e.take("10s")
	e.seen(name)
	e.pod(name, "stuck", stuck, grace(3600))
	e.fault(machines.Fault{Node: name, Kind: machines.Partition})
	policy := strings.ReplaceAll(refusing, "NODE", name)
	policy = strings.ReplaceAll(policy, " || !has(oldObject.metadata.finalizers) || has(object.metadata.finalizers)", "")
	e.Must(sandbox.ApplyYAML(e.Ctx, e.Plane.RESTConfig(), []byte(policy)), "apply policy")
	e.Until("the policy works", func() bool {
		_, err := e.Client.CoreV1().Nodes().Patch(e.Ctx, name, mergePatch, []byte(`{"metadata":{"labels":{"x":"y"}}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
	e.delete(name)
	end := e.node(name).DeletionTimestamp.Add(10 * time.Second)
	if late := e.power(name).Time.Sub(end); late > 1500*time.Millisecond {
		t.Errorf("the machine was stopped %v after E", late)
	}
	e.Must(e.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(e.Ctx, "keep-"+name,
		metav1.DeleteOptions{}), "delete binding")
	e.awaitGone(name)
}

func lyingProvider(t *testing.T, e *ending) {
	name := e.take("6s")
	e.seen(name)
	e.pod(name, "db", stuck, grace(3600), e.withDisk(name))
	static := e.staticPod(name)
	e.fault(machines.Fault{Node: name, Kind: machines.Lies}, machines.Fault{Node: name, Kind: machines.DetachFails})
	e.delete(name)
	end := e.node(name).DeletionTimestamp.Add(20 * time.Second)
	e.Until("E has passed for long", func() bool { return time.Now().After(end) })
	if message := e.awaitNodeEvent(name, "DeadlineReached"); !strings.Contains(message, "stopping the machine") {
		t.Errorf("event %q", message)
	}
	e.kept(static)
	e.unmarked(name)
	e.expectNever(machines.Event{Volume: e.disk(name), Event: machines.Detached})
	e.fault(machines.Fault{Node: name})
	e.awaitGone(name)
}

func deadKubelet(t *testing.T, e *ending) {
	name := e.take("12s")
	e.seen(name)
	pod := e.pod(name, "db", grace(4), e.withDisk(name))
	e.fault(machines.Fault{Node: name, Kind: machines.KubeletDead})
	e.delete(name)
	end := e.node(name).DeletionTimestamp.Add(12 * time.Second)
	if late := e.power(name).Time.Sub(end); late > 1500*time.Millisecond {
		t.Errorf("the machine was stopped %v after E", late)
	}
	e.AwaitEvent(machines.Event{Volume: e.disk(name), Event: machines.Detached})
	e.awaitGone(name)
	if e.getPod(pod.Name) != nil {
		t.Error("the pod is left")
	}
}

func deadlineMovesEarlierOnly(t *testing.T, e *ending) {
	name := e.take("10m")
	e.seen(name)
	e.pod(name, "stuck", annotated("karpenter.sh/do-not-disrupt", "true"), grace(1))
	e.delete(name)
	written := func() string { return e.node(name).Annotations[termination.TimestampAnnotation] }
	e.Until("the deadline is written", func() bool { return written() != "" })
	want := written()
	for _, text := range []string{"soon", e.node(name).DeletionTimestamp.Add(time.Hour).UTC().Format(time.RFC3339)} {
		e.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"%s":"%s"}}}`, termination.TimestampAnnotation, text))
		e.Until("the deadline is written back", func() bool { return written() == want })
	}
	e.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"%s":null}}}`, termination.TimestampAnnotation))
	e.Until("the deadline is written back", func() bool { return written() == want })
	soon := time.Now().Add(5 * time.Second).UTC().Truncate(time.Second)
	e.patch(name, fmt.Sprintf(`{"metadata":{"annotations":{"%s":"%s"}}}`, termination.TimestampAnnotation,
		soon.Format(time.RFC3339)))
	e.awaitGone(name)
	if late := time.Since(soon); late > 20*time.Second {
		t.Errorf("the node is gone %v after the earlier deadline", late)
	}
}
