package nodes

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const daemon = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: APP, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: APP}}
  template:
    metadata: {labels: {app: APP}}
    spec:
      nodeSelector: {APP: ""}
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: image}]
`

// TestOneNodeWithAllTroubles ends a node whose kubelet dies, with a full budget, do-not-disrupt, a policy that refuses
// an eviction, a foreign finalizer, a static pod, a DaemonSet's pod, and a disk that stays attached. The leader is killed
// in the middle, each time at another moment.
func TestOneNodeWithAllTroubles(t *testing.T) {
	t.Parallel()
	e := startEnding(t, 3, "--instances=socket", "--instances-socket=SOCKET")
	marked := func(name string) func() bool {
		return func() bool { ours, _ := termination.OutOfService(e.node(name)); return ours }
	}
	for name, killed := range map[string]func(*ending, string){
		"while it drains": func(e *ending, name string) {
			uid := e.node(name).UID
			e.Until("the first pod is cut short", func() bool { return len(e.report(uid).CutShort) > 0 })
		},
		"when the machine is off":       func(e *ending, name string) { e.power(name) },
		"when the pods are being freed": func(e *ending, name string) { e.Until("the node is marked", marked(name)) },
	} {
		t.Run(name, func(t *testing.T) {
			e := e.of(t)
			endWithAllTroubles(t, e, e.take("14s"), func(node string) {
				killed(e, node)
				e.Must(e.terminator.Kill(), "kill node-terminator")
				<-e.terminator.Done()
				e.begin()
			})
		})
	}
}

// endWithAllTroubles ends the node. The function kills the leader.
func endWithAllTroubles(t *testing.T, e *ending, name string, kill func(node string)) {
	t.Helper()
	e.seen(name)
	pods := e.trouble(name)
	uid := e.node(name).UID
	e.deleteWithGrace(pods["finalized"].Name, 1)
	e.delete(name)
	end := e.node(name).DeletionTimestamp.Add(14 * time.Second)
	kill(name)
	e.expectStop(name, end)
	e.expectAllNamed(uid, pods)
	explained, code := reported[blocker.Report](e, "why", "node/"+name)
	if code != 3 || !waitsFor(explained, blocker.DetachFailed) || !waitsFor(explained, blocker.UnknownFinalizer) {
		t.Errorf("while the node waits, exit code %d: %+v", code, explained)
	}
	e.fault(machines.Fault{Node: name})
	e.awaitGone(name)
	e.awaitPhase(uid, termination.PhaseEnded)
	explained, code = reported[blocker.Report](e, "why", "node/"+name)
	if code != 0 || !waitsFor(explained, blocker.NodeEnded) {
		t.Errorf("after the end, exit code %d: %+v", code, explained)
	}
	e.expectNever(machines.Event{Event: machines.TwoWriters})
	e.release(pods["finalized"])
}

// expectAllNamed wants the disk and all pods in the report, and the pods that the machine ended gone.
func (e *ending) expectAllNamed(uid types.UID, pods map[string]*v1.Pod) {
	e.T.Helper()
	var report termination.Report
	e.Until("the report names the disk", func() bool {
		report = e.report(uid)
		return len(report.Volumes) == 1 && strings.HasPrefix(report.Volumes[0].State, "DetachFailed")
	})
	e.Until("the report names the pod with the finalizer", func() bool {
		for _, left := range e.report(uid).Left {
			if left.UID == string(pods["finalized"].UID) && strings.Contains(left.Holder, "example.com/hold") {
				return true
			}
		}
		return false
	})
	report = e.report(uid)
	unknown := report.Counts.Unknown // #70: the leader that was killed had not reported them yet
	for _, which := range []string{"budgeted", "guarded", "refused"} {
		named := slices.ContainsFunc(report.CutShort, func(one termination.CutShort) bool {
			return one.UID == string(pods[which].UID)
		})
		if !named {
			unknown--
		}
		if unknown < 0 {
			e.T.Errorf("the report does not name the pod %s: %+v", which, report)
		}
		if e.getPod(pods[which].Name) != nil {
			e.T.Errorf("the pod %s is left", which)
		}
	}
}

// release removes the foreign finalizer of the pod.
func (e *ending) release(pod *v1.Pod) {
	e.T.Helper()
	_, err := e.Client.CoreV1().Pods(pod.Namespace).Patch(e.Ctx, pod.Name, mergePatch,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	e.Must(err, "patch pod")
}

// trouble creates pods that nobody can end before the machine is off.
func (e *ending) trouble(name string) map[string]*v1.Pod {
	e.T.Helper()
	e.patch(name, `{"metadata":{"annotations":{"cloudmock.exeunt.io/static-pods":"static"}}}`)
	e.fit(name, name)
	e.apply(strings.ReplaceAll(daemon, "APP", name))
	pods := map[string]*v1.Pod{
		"budgeted": e.pod(name, "budgeted", grace(4)),
		"guarded":  e.pod(name, "guarded", stuck, grace(3600), e.withDisk(name)),
		"refused":  e.pod(name, "refused", grace(4)),
		"finalized": e.pod(name, "finalized", grace(4), func(p *v1.Pod) {
			p.Finalizers = []string{"example.com/hold"}
		}),
	}
	e.awaitReady(name, 1)
	(cloud{e.CloudMock}).awaitMirror("static-"+name, "")
	e.apply(strings.ReplaceAll(fullBudget, "APP", name+"-budgeted"))
	policy := strings.ReplaceAll(keeping, "POD", pods["refused"].Name)
	e.Must(sandbox.ApplyYAML(e.Ctx, e.Plane.RESTConfig(), []byte(policy)), "apply policy")
	e.Until("the policy works", func() bool { return e.refusesEviction(pods["refused"]) })
	e.fault(machines.Fault{Node: name, Kind: machines.KubeletDead}, machines.Fault{Node: name, Kind: machines.DetachFails})
	return pods
}
