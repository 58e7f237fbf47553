package cli

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// deletionWaiting is the reason of the events.
const deletionWaiting = "DeletionWaiting"

// rig is a cluster whose programs both serve metrics, and whose driver deletes the first
// volume slowly.
type rig struct {
	*harness.Session
	controllerPort int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	port := harness.FreePort(t)
	s := harness.Own(t, harness.Setup{
		DriverFlags:      "--faults=../testdata/slow-deletion.yaml",
		ProvisionerFlags: "--timeout=5m",
		ControllerFlags:  servingAt(port),
	}, harness.Within(3*harness.Timeout))
	return &rig{s, port}
}

// servingAt returns the flags of a pv-controller that serves its metrics at the port.
func servingAt(port int) string {
	return fmt.Sprintf("--bind-address=127.0.0.1 --secure-port=%d --authorization-always-allow-paths=/metrics", port)
}

func (r *rig) controllerMetrics() string { return r.ControllerMetrics(r.controllerPort) }

func (r *rig) provisionerMetrics() string {
	text, _ := r.HTTPGet(r.Provisioner, "/metrics")
	return text
}

func TestWaitingDeletionHasEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow := r.bound("slow")
	r.DeleteClaim("slow")
	kept := r.bound("kept")
	r.DeleteVolume(kept.Name)
	used := r.bound("used")
	pod := r.CreatePod("used")
	r.DeleteVolume(used.Name)
	r.DeleteClaim("used")
	quick := r.bound("quick")
	r.DeleteVolume(quick.Name)
	r.DeleteClaim("quick")
	r.AwaitVolumeGone(quick.Name)

	claim := r.NewClaim("used", harness.DeleteClass)
	r.expectEvent(claim, "PodUsesClaim", "Pod "+r.Namespace+"/"+pod.Name,
		"kubectl delete pod "+pod.Name+" -n "+r.Namespace)
	r.expectEvent(kept, "ClaimExists", "PersistentVolumeClaim "+r.Namespace+"/kept",
		"kubectl delete pvc kept -n "+r.Namespace)
	r.expectEvent(used, "ClaimExists", "PersistentVolumeClaim "+r.Namespace+"/used",
		"kubectl exeunt why pvc/used -n "+r.Namespace)
	r.expectEvent(slow, "DriverDeletes", r.Driver.DriverName)
	expectSample(t, r.controllerMetrics(), `exeunt_deletion_waiting{blocker="PodUsesClaim"} 1`)
	expectSample(t, r.controllerMetrics(), `exeunt_deletion_waiting{blocker="ClaimExists"} 2`)
	expectSample(t, r.provisionerMetrics(), `exeunt_deletion_waiting{blocker="DriverDeletes"} 1`)

	r.AwaitVolumeGone(slow.Name)
	r.DeleteClaim("kept")
	r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64)}), "delete pod")
	r.AwaitVolumeGone(kept.Name)
	r.AwaitVolumeGone(used.Name)
	r.Until("no deletion waits", func() bool {
		return strings.Contains(r.controllerMetrics(), `exeunt_deletion_waiting{blocker="PodUsesClaim"} 0`) &&
			strings.Contains(r.controllerMetrics(), `exeunt_deletion_waiting{blocker="ClaimExists"} 0`) &&
			strings.Contains(r.provisionerMetrics(), `exeunt_deletion_waiting{blocker="DriverDeletes"} 0`)
	})
	r.expectEvents(map[string]int{kept.Name: 1, used.Name: 1, slow.Name: 1, "used": 1})
}

// In a namespace that is being deleted the API server refuses events.
func TestTerminatingNamespaceGetsMetricOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range []string{"first", "second"} {
		r.bound(name)
	}
	r.CreatePod("first")
	r.Must(r.Client.CoreV1().Namespaces().Delete(r.Ctx, r.Namespace, metav1.DeleteOptions{}), "delete namespace")
	r.DeleteClaim("first")
	r.Until("the metric counts the claim", func() bool {
		return strings.Contains(r.controllerMetrics(), `exeunt_deletion_waiting{blocker="PodUsesClaim"} 1`)
	})
	tried := func() int {
		return r.CountRequests(func(e sandbox.Event) bool {
			return e.Resource == "events" && e.Namespace == r.Namespace && e.Code == 403
		})
	}
	r.Until("the event is refused", func() bool { return tried() > 0 })
	if got := tried(); got != 1 {
		t.Errorf("the pv-controller tried %d times to write the event, want once", got)
	}
	for _, process := range r.Processes() {
		if r.LogContains(process, "Server rejected event") {
			t.Errorf("%s logs that the event was refused", process.Name())
		}
	}
}

// bound returns the volume of a new claim.
func (r *rig) bound(claim string) *v1.PersistentVolume {
	r.T.Helper()
	r.CreateClaim(claim, harness.DeleteClass)
	return r.AwaitBound(claim)
}

func (r *rig) expectEvent(object metav1.Object, words ...string) {
	r.T.Helper()
	message := r.AwaitEvent(object, deletionWaiting)
	for _, word := range words {
		if !strings.Contains(message, word) {
			r.T.Errorf("the event about %s lacks %q: %s", object.GetName(), word, message)
		}
	}
}

// expectEvents compares the number of events by the name of their object.
func (r *rig) expectEvents(want map[string]int) {
	r.T.Helper()
	events, err := r.Client.CoreV1().Events(metav1.NamespaceAll).
		List(r.Ctx, metav1.ListOptions{FieldSelector: "reason=" + deletionWaiting})
	r.Must(err, "list events")
	got := map[string]int{}
	for _, event := range events.Items {
		got[event.InvolvedObject.Name] += int(event.Count)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.T.Errorf("events by object: %v, want %v", got, want)
	}
}

func expectSample(t *testing.T, metrics, sample string) {
	t.Helper()
	if !hasSample(metrics, sample) {
		t.Errorf("the metrics lack %s:\n%s", sample, lines(metrics, "exeunt_"))
	}
}

func hasSample(metrics, sample string) bool { return strings.Contains(metrics, "\n"+sample+"\n") }

// lines returns the lines with the prefix.
func lines(text, prefix string) string {
	var found []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, prefix) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "\n")
}
