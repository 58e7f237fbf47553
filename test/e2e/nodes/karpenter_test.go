package nodes

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// karpenterFinalizer is on each Node and NodeClaim that Karpenter terminates.
const karpenterFinalizer = "karpenter.sh/termination"

// karpenter is the real Karpenter (test/upstream/karpenter), whose machines are those of the cloud.
type karpenter struct {
	*ending
	process *sandbox.Process
}

// startKarpenter installs Karpenter's kinds, over ours if those are there, and starts Karpenter.
func (e *ending) startKarpenter() *karpenter {
	e.T.Helper()
	definitions, err := exec.CommandContext(e.Ctx, karpenterPath(e), "crds").Output()
	e.Must(err, "print the kinds of Karpenter")
	e.Must(sandbox.ApplyYAML(e.Ctx, e.Plane.RESTConfig(), definitions), "install the kinds of Karpenter")
	client := dynamic.NewForConfigOrDie(e.Plane.RESTConfig())
	for _, kind := range []schema.GroupVersionResource{nodeClaims, nodeClaims.GroupVersion().WithResource("nodepools"),
		{Group: "karpenter.kwok.sh", Version: "v1alpha1", Resource: "kwoknodeclasses"}} {
		e.Until(kind.Resource+" are served", func() bool {
			_, err := client.Resource(kind).List(e.Ctx, metav1.ListOptions{})
			return err == nil
		})
	}
	k := &karpenter{ending: e}
	e.Must(k.start(e.Ctx), "start Karpenter")
	e.T.Cleanup(func() { e.Must(k.process.Kill(), "kill Karpenter") })
	return k
}

func karpenterPath(e *ending) string {
	e.T.Helper()
	path, err := harness.Binaries().UpstreamPath("karpenter")
	e.Must(err, "find Karpenter, which `make upstream-karpenter` builds")
	return path
}

func (k *karpenter) start(ctx context.Context) (err error) {
	k.process, err = sandbox.Start(ctx, sandbox.Program{
		Path: karpenterPath(k.ending), LogFile: filepath.Join(k.Dir, "karpenter.log"),
		Env: []string{"KUBECONFIG=" + k.Plane.AdminKubeconfig, "CLOUDMOCK_SOCKET=" + k.Socket,
			"DISABLE_LEADER_ELECTION=true", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0"},
	})
	return err
}

// restart kills Karpenter, and starts it again.
func (k *karpenter) restart(ctx context.Context) error {
	if err := k.process.Kill(); err != nil {
		return err
	}
	return k.start(ctx)
}

// serve makes the machine one of Karpenter: a NodeClaim with the name of its Node.
func (k *karpenter) serve(ctx context.Context, node, period string) error {
	number := strings.TrimPrefix(node, "mock-")
	return sandbox.ApplyYAML(ctx, k.Plane.RESTConfig(), fmt.Appendf(nil, `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata:
  name: %s
  labels: {karpenter.kwok.sh/kwoknodeclass: default}
  annotations: {cloudmock.exeunt.io/machine: "mock://instance-%s"}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  terminationGracePeriod: %s
  requirements: []
`, node, number, period))
}

// isServed reports whether Karpenter knows the Node of the claim, and keeps it with its finalizer.
func (k *karpenter) isServed(ctx context.Context, name string) (bool, error) {
	node, err := k.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	claim, err := dynamic.NewForConfigOrDie(k.Plane.RESTConfig()).Resource(nodeClaims).Get(ctx, name, metav1.GetOptions{})
	return err == nil && slices.Contains(node.Finalizers, karpenterFinalizer) && isInitialized(claim), err
}

func isInitialized(claim *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["type"] == "Initialized" && condition["status"] == "True"
	})
}

// writes are those of Karpenter and of node-terminator in the audit log.
type writes []sandbox.Event

func (e *ending) writes() writes {
	e.T.Helper()
	requests, err := sandbox.ReadAudit(e.Plane.AuditLog)
	e.Must(err, "read audit log")
	return slices.DeleteFunc(requests, func(r sandbox.Event) bool {
		return !r.Writes() || r.Resource == "events" || !isKarpenter(r) && !strings.HasSuffix(r.User, ":node-terminator")
	})
}

func isKarpenter(r sandbox.Event) bool { return strings.HasPrefix(r.UserAgent, "karpenter/") }

// on counts those on the Node, on the NodeClaim with its name, and on objects whose names begin with the prefix.
func (w writes) on(node, prefix string) (karpenters, ours int) {
	for _, r := range w {
		switch {
		case r.Name != node && !strings.HasPrefix(r.Name, prefix):
		case isKarpenter(r):
			karpenters++
		default:
			ours++
		}
	}
	return karpenters, ours
}

// TestKarpenterAndOursLeaveEachOtherAlone ends nodes of Karpenter, one with our label, and nodes of ours, one with a
// NodeClaim.
func TestKarpenterAndOursLeaveEachOtherAlone(t *testing.T) {
	e := startEnding(t, 4, "--instances=socket", "--instances-socket=SOCKET")
	k := e.startKarpenter()
	names := []string{"mock-0", "mock-1", "mock-2", "mock-3"}
	for _, name := range names[:2] {
		e.Must(k.serve(e.Ctx, name, "30s"), "create NodeClaim")
		e.Until("Karpenter serves "+name, func() bool {
			served, err := k.isServed(e.Ctx, name)
			e.Must(err, "read node and NodeClaim")
			return served
		})
	}
	for _, name := range names[1:] { // #60: one of Karpenter's has the label
		e.label(name, "30s")
	}
	e.claim(names[3], termination.ClaimGroup, "30s")
	e.Until("ours are protected", func() bool {
		return termination.Protected(e.node(names[2])) && termination.Protected(e.getClaim(names[3]))
	})
	for _, name := range names {
		e.pod(name, "web", annotated("cloudmock.exeunt.io/exit-after", "2s"))
	}
	guarded := e.pod(names[0], "guarded", stuck, grace(5))
	foretold, code := reported[forecast.Report](e, "forecast", "node/"+names[0])
	if code != 2 || foretold.Period != "30s" || !namesCut(foretold, guarded) {
		t.Errorf("the forecast of Karpenter's node, exit code %d: %+v", code, foretold)
	}
	for _, name := range names[:3] {
		e.delete(name)
	}
	e.Must(e.claims().Delete(e.Ctx, names[3], metav1.DeleteOptions{}), "delete NodeClaim")
	e.expectExplained(names[0])
	for i, name := range names {
		e.expectEndedBy(name, i < 2)
	}
}

// expectExplained wants why to say what Karpenter's node waits for, and until when. It sees no Karpenter, which runs
// beside the cluster, so there is no verdict.
func (e *ending) expectExplained(name string) {
	e.T.Helper()
	e.Until("why names the pod that the node waits for, and the deadline", func() bool {
		explained, _ := reported[blocker.Report](e, "why", "node/"+name)
		end := e.getClaim(name).GetAnnotations()[termination.ClaimTimestampAnnotation]
		return waitsFor(explained, blocker.DoNotDisrupt) && end != "" && explained.Deadline != nil &&
			explained.Deadline.Time == end
	})
}

// expectEndedBy waits until Node, NodeClaim and machine are gone, and wants that Karpenter alone has written on them,
// or node-terminator alone.
func (e *ending) expectEndedBy(name string, karpenter bool) {
	e.T.Helper()
	e.awaitGone(name)
	e.Until("the NodeClaim of "+name+" is gone", func() bool { return e.getClaim(name) == nil })
	e.AwaitEvent(machines.Event{Node: name, Event: machines.PowerOff})
	karpenters, ours := e.writes().on(name, name+"-")
	if karpenter != (karpenters > 0) || karpenter != (ours == 0) {
		e.T.Errorf("%s: %d writes of Karpenter, %d of node-terminator", name, karpenters, ours)
	}
}
