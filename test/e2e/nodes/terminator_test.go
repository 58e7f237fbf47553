package nodes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

var (
	oneMi         = resource.MustParse("1Mi")
	updateOptions = metav1.UpdateOptions{}
	mergePatch    = types.MergePatchType
)

// ending is a cloud whose nodes node-terminator ends.
type ending struct {
	cloud
	terminator *sandbox.Process
	args       []string
	// kubeconfig of the program, "" for that of its account.
	kubeconfig string
	faults     *faults
	// taken is the number of machines that tests have taken for themselves.
	taken *atomic.Int32
}

// startEnding starts a cloud and node-terminator with these flags.
func startEnding(t *testing.T, nodes int, flags ...string) *ending {
	t.Helper()
	return startEndingWith(t, harness.Setup{}, nodes, flags...)
}

// startEndingWith is startEnding with further flags of the machines and of kube-controller-manager.
func startEndingWith(t testing.TB, setup harness.Setup, nodes int, flags ...string) *ending {
	t.Helper()
	setup.NoPrograms, setup.Machines = true, nodes
	limit := 3 * harness.Timeout
	if _, measured := t.(*testing.B); measured { // of many nodes, and perhaps on a busy machine
		limit = 20 * time.Minute
	}
	mock := harness.OwnCloud(t, setup, nodes, harness.Within(limit))
	e := &ending{cloud: cloud{mock}, taken: &atomic.Int32{}, faults: &faults{}}
	for _, file := range []string{"rbac.yaml", "serving-rbac.yaml", "priority.yaml", "nodeclaim/crd.yaml"} { // the program runs beside the cluster
		text, err := deploy.NodeTerminator.ReadFile("node-terminator/" + file)
		e.Must(err, "read manifest")
		e.Must(sandbox.ApplyYAML(e.Ctx, e.Plane.RESTConfig(), text), "apply manifest")
	}
	e.alone()
	for _, flag := range flags {
		e.args = append(e.args, strings.ReplaceAll(flag, "SOCKET", e.Socket))
	}
	e.begin()
	t.Cleanup(func() {
		e.Must(e.terminator.Kill(), "kill node-terminator")
		e.keepLogs()
	})
	return e
}

// keepLogs copies logs to the folder that EXEUNT_KEEP names, if the test failed.
func (e *ending) keepLogs() {
	to := os.Getenv("EXEUNT_KEEP")
	if to == "" || !e.T.Failed() {
		return
	}
	for _, log := range []string{e.terminator.LogFile(), e.Plane.AuditLog, filepath.Join(e.Dir, "cloud.events")} {
		text, err := os.ReadFile(log)
		e.Must(err, "read log")
		e.Must(os.WriteFile(filepath.Join(to, e.T.Name()+"-"+filepath.Base(log)), text, 0o600), "keep log")
	}
}

// faults are those of all machines: tests that run in parallel share one file.
type faults struct {
	mu  sync.Mutex
	all []machines.Fault
}

// fault replaces the faults of a node. A fault without a kind is none.
func (e *ending) fault(now ...machines.Fault) {
	e.T.Helper()
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	e.faults.all = append(slices.DeleteFunc(e.faults.all, func(f machines.Fault) bool { return f.Node == now[0].Node }),
		slices.DeleteFunc(now, func(f machines.Fault) bool { return f.Kind == "" })...)
	e.SetFaults(e.faults.all...)
}

// begin starts node-terminator.
func (e *ending) begin() {
	e.T.Helper()
	var err error
	e.terminator, err = e.Plane.StartNodeTerminator(e.Ctx, sandbox.Controller{Kubeconfig: e.kubeconfig,
		Args: append([]string{"--leader-elect=false", "--v=4"}, e.args...)})
	e.Must(err, "start node-terminator")
}

// of returns the cloud for a test within another one.
func (e *ending) of(t *testing.T) *ending {
	one := *e
	session, mock := *e.Session, *e.CloudMock
	session.T = t
	mock.Session, one.CloudMock = &session, &mock
	return &one
}

// alone removes the pods of our other programs: their budgets delay drains, and reports count them.
func (e *ending) alone() {
	e.T.Helper()
	e.Must(e.Client.AppsV1().Deployments(deploy.Namespace).DeleteCollection(e.Ctx, metav1.DeleteOptions{},
		metav1.ListOptions{}), "delete Deployments")
	e.Until("no pod of a program is left", func() bool {
		pods, err := e.Client.CoreV1().Pods(deploy.Namespace).List(e.Ctx, metav1.ListOptions{})
		e.Must(err, "list pods")
		return len(pods.Items) == 0
	})
}

// pick returns the name of a machine that no other test uses.
func (e *ending) pick() string { return fmt.Sprintf("mock-%d", e.taken.Add(1)-1) }

// take returns the name of a machine that no other test uses, labeled with the period, and served.
func (e *ending) take(period string) string {
	e.T.Helper()
	name := e.pick()
	e.label(name, period)
	e.Until(name+" has the finalizer", func() bool { return termination.Protected(e.node(name)) })
	return name
}

// label sets or removes the label of a node.
func (e *ending) label(name, period string) {
	e.T.Helper()
	value := "null"
	if period != "" {
		value = fmt.Sprintf("%q", period)
	}
	e.patch(name, fmt.Sprintf(`{"metadata":{"labels":{"%s":%s}}}`, termination.Label, value))
}

func (e *ending) patch(name, body string) {
	e.T.Helper()
	_, err := e.Client.CoreV1().Nodes().Patch(e.Ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	e.Must(err, "patch node")
}

// node returns the node, nil if it is gone.
func (e *ending) node(name string) *v1.Node {
	e.T.Helper()
	node, err := e.Client.CoreV1().Nodes().Get(e.Ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	e.Must(err, "read node")
	return node
}

// delete deletes the node.
func (e *ending) delete(name string) time.Time {
	e.T.Helper()
	now := time.Now()
	e.Must(e.Client.CoreV1().Nodes().Delete(e.Ctx, name, metav1.DeleteOptions{}), "delete node")
	return now
}

// awaitGone waits until the node is gone.
func (e *ending) awaitGone(name string) {
	e.T.Helper()
	e.Until(name+" is gone", func() bool { return e.node(name) == nil })
}

// pod creates a pod on the node, and waits until it runs.
func (e *ending) pod(node, name string, change ...func(*v1.Pod)) *v1.Pod {
	e.T.Helper()
	created := e.bindPod(node, name, change...)
	e.Until(created.Name+" is ready", func() bool {
		now := e.getPod(created.Name)
		return now != nil && isReady(*now)
	})
	return created
}

// bindPod creates a pod on the node.
func (e *ending) bindPod(node, name string, change ...func(*v1.Pod)) *v1.Pod {
	e.T.Helper()
	app := node + "-" + name
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: app, Labels: map[string]string{"app": app}},
		Spec: v1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: ptr.To[int64](30),
			Containers: []v1.Container{{Name: "main", Image: "image"}}}}
	for _, f := range change {
		f(pod)
	}
	created, err := e.Client.CoreV1().Pods(e.Namespace).Create(e.Ctx, pod, metav1.CreateOptions{})
	e.Must(err, "create pod")
	return created
}

// getPod returns the pod, nil if it is gone.
func (e *ending) getPod(name string) *v1.Pod {
	e.T.Helper()
	pod, err := e.Client.CoreV1().Pods(e.Namespace).Get(e.Ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	e.Must(err, "read pod")
	return pod
}

// kept fails the test if the pod was removed.
func (e *ending) kept(pod *v1.Pod) {
	e.T.Helper()
	now, err := e.Client.CoreV1().Pods(pod.Namespace).Get(e.Ctx, pod.Name, metav1.GetOptions{})
	if err != nil || now.UID != pod.UID {
		e.T.Errorf("pod %s was removed before the machine was off: %v", pod.Name, err)
	}
}

// staticPod has the machine run a static pod, and returns its mirror pod.
func (e *ending) staticPod(node string) (mirror *v1.Pod) {
	e.T.Helper()
	e.patch(node, `{"metadata":{"annotations":{"cloudmock.exeunt.io/static-pods":"agent"}}}`)
	e.Until("the mirror pod is there", func() (exists bool) {
		var err error
		mirror, err = e.Client.CoreV1().Pods(metav1.NamespaceSystem).Get(e.Ctx, "agent-"+node, metav1.GetOptions{})
		return err == nil
	})
	return mirror
}

func grace(seconds int64) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func annotated(key, value string) func(*v1.Pod) {
	return func(p *v1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

// stuck is a pod that nobody may evict and that ignores SIGTERM.
func stuck(p *v1.Pod) {
	annotated("karpenter.sh/do-not-disrupt", "true")(p)
	annotated("cloudmock.exeunt.io/ignore-sigterm", "true")(p)
}

// awaitEvent waits for an event of the node with the reason, and returns its message.
func (e *ending) awaitNodeEvent(node, reason string) string {
	e.T.Helper()
	message := ""
	e.Until("node "+node+" has an event "+reason, func() bool {
		for _, event := range e.nodeEvents(node) {
			if event.Reason == reason {
				message = event.Message
				return true
			}
		}
		return false
	})
	return message
}

// nodeEvents returns the events of node-terminator about the node.
func (e *ending) nodeEvents(node string) []v1.Event {
	e.T.Helper()
	events, err := e.Client.CoreV1().Events(metav1.NamespaceAll).List(e.Ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,involvedObject.name=" + node})
	e.Must(err, "list events")
	return slices.DeleteFunc(events.Items,
		func(event v1.Event) bool { return event.Source.Component != "node-terminator" })
}

// report returns the report about the node with the UID, an empty one if there is none.
func (e *ending) report(uid types.UID) termination.Report {
	e.T.Helper()
	stored, err := e.Client.CoreV1().ConfigMaps(deploy.Namespace).Get(e.Ctx, "node-termination-"+string(uid),
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return termination.Report{}
	}
	e.Must(err, "read report")
	var report termination.Report
	e.Must(json.Unmarshal([]byte(stored.Data[termination.ReportKey]), &report), "decode report")
	return report
}

// awaitPhase waits until the report of the node says that the termination has come this far.
func (e *ending) awaitPhase(uid types.UID, phase termination.Phase) termination.Report {
	e.T.Helper()
	var report termination.Report
	e.Until(fmt.Sprintf("the report says %s", phase), func() bool {
		report = e.report(uid)
		return report.Phase == phase
	})
	return report
}
