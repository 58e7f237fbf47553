package upstream

import (
	"fmt"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// perPhase is the number of claims per phase; a phase is the run of one pair of programs.
const perPhase = 100

// TestSwapToUpstreamAndBackLosesNoVolume runs our programs, upstream's and ours again on
// the same objects. Each pair is ended under load. Nothing hangs, no volume that upstream
// served or an administrator keeps is deleted, and the only volumes without an object are
// those with an unresolved entry and those that upstream leaked.
func TestSwapToUpstreamAndBackLosesNoVolume(t *testing.T) {
	t.Parallel()
	w := newSwap(t)
	w.phaseOfOurs()
	w.phaseOfUpstream()
	w.phaseOfOursAgain()
	w.expectExactOrphans()
	w.report()
}

// swap is a driver whose provisioner is replaced.
type swap struct {
	*harness.Session
	driver *harness.ScriptedDriver
	claims *harness.ClaimWatch
	// running are the programs of the phase.
	controller, sidecar *sandbox.Process
	// deleted has the deletion times of Terminating claims, by name. slowest is the longest
	// deletion of each phase.
	deleted map[string]time.Time
	slowest map[string]time.Duration
	created int
	// inherited are the journal entries at the kill of our provisioner.
	inherited []journal.Entry
	// protected are names of volumes that must never be deleted, with the reason. kept are
	// the protected volumes without a PersistentVolume.
	protected map[string]string
	kept      []string
	// leaked are names of volumes that upstream leaked, gone of volumes to be reclaimed.
	leaked, gone []string
	// unfinished are volumes of entries whose claim was deleted while upstream led.
	unfinished []string
	unresolved []journal.Entry
}

func newSwap(t *testing.T) *swap {
	t.Helper()
	s := harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(4*harness.Timeout))
	w := &swap{Session: s, driver: harness.NewScriptedDriver(s, false), claims: s.WatchClaims(),
		deleted: map[string]time.Time{}, slowest: map[string]time.Duration{}, protected: map[string]string{}}
	s.Must(s.GrantUpstream(s.Ctx), "grant upstream's rights")
	for name, policy := range map[string]v1.PersistentVolumeReclaimPolicy{
		"delete": v1.PersistentVolumeReclaimDelete, "retain": v1.PersistentVolumeReclaimRetain,
	} {
		class := harness.NewClass(s.Namespace+"-"+name, w.driver.Config.Name, policy, storagev1.VolumeBindingImmediate)
		s.CreateStorageClass(class)
	}
	t.Cleanup(func() {
		for _, process := range []*sandbox.Process{w.controller, w.sidecar} {
			if process == nil {
				continue
			}
			_ = process.Kill()
			if text, _ := os.ReadFile(process.LogFile()); t.Failed() {
				t.Logf("the end of the log of %s:\n%s", process.Name(), text[max(0, len(text)-4096):])
			}
		}
	})
	return w
}

// sidecarFlags are the flags of both provisioners. The lease of a killed one expires soon.
var sidecarFlags = []string{
	"--leader-election", "--leader-election-namespace=" + deploy.Namespace, "--leader-election-lease-duration=8s",
	"--leader-election-renew-deadline=4s", "--leader-election-retry-period=500ms",
	"--timeout=2s", "--retry-interval-start=100ms", "--retry-interval-max=1s", "--feature-gates=ReleaseLeaderElectionOnExit=true",
}

func (w *swap) sidecarOf(name string) sandbox.Controller {
	return sandbox.Controller{Name: name, HonorReclaimPolicy: true, Args: sidecarFlags, Env: []string{"NAMESPACE=" + deploy.Namespace}}
}

func (w *swap) startOurs(name string) {
	w.T.Helper()
	var err error
	w.controller, err = w.Plane.StartPVController(w.Ctx, sandbox.Controller{Name: "loops-" + name, HonorReclaimPolicy: true})
	w.Must(err, "start pv-controller")
	w.sidecar, err = w.Plane.StartProvisioner(w.Ctx, &sandbox.Driver{Socket: w.driver.Socket}, w.sidecarOf("sidecar-"+name))
	w.Must(err, "start provisioner")
}

func (w *swap) startUpstream(name string) {
	w.T.Helper()
	var err error
	w.controller, err = w.Plane.StartUpstreamLoops(w.Ctx, sandbox.Controller{Name: "loops-" + name})
	w.Must(err, "start upstream's loops")
	w.sidecar, err = w.Plane.StartUpstreamProvisioner(w.Ctx, &sandbox.Driver{Socket: w.driver.Socket}, w.sidecarOf("sidecar-"+name))
	w.Must(err, "start upstream's sidecar")
}

// frequentFaults apply to any call of the method.
func frequentFaults() []csimock.Fault {
	return []csimock.Fault{
		{Method: "CreateVolume", Code: codes.Unavailable, Times: 5},
		{Method: "CreateVolume", Code: codes.Unavailable, After: true, Times: 5},
		{Method: "CreateVolume", Code: codes.Internal, After: true, Times: 5},
		{Method: "CreateVolume", Code: codes.ResourceExhausted, Times: 3},
		{Method: "DeleteVolume", Code: codes.Internal, Times: 3},
		{Method: "DeleteVolume", Code: codes.Unavailable, After: true, Times: 3},
	}
}

// lostConnection is for our provisioner only; it ends upstream's sidecar.
var lostConnection = csimock.Fault{Method: "CreateVolume", Disconnect: true, After: true, Times: 2}

// unanswered creates claims, before any program runs, whose CreateVolume calls hang. With
// after, the volume is created before the call hangs.
func (w *swap) unanswered(phase string, from, to int, after bool) []string {
	w.T.Helper()
	created := w.create(phase, from, to)
	var hanging []csimock.Fault
	for _, name := range created {
		hanging = append(hanging, csimock.Fault{Method: "CreateVolume", Volume: w.volumeOf(name), Hang: true, After: after})
	}
	w.Must(w.driver.Inject(hanging), "inject faults")
	return created
}

// phaseOfOurs ends with SIGKILL.
func (w *swap) phaseOfOurs() {
	w.T.Helper()
	created := w.unanswered("a", 0, 10, true)
	w.unanswered("a", 10, 13, false)
	w.Must(w.driver.Inject(append(frequentFaults(), lostConnection)), "inject faults")
	w.startOurs("first")
	for _, name := range created {
		w.awaitStored(name)
	}
	w.delete(claimNames("a", 0, 3)...)
	w.delete("a-10")
	w.load("a", 13)
	w.awaitAllGone("ours")
	pending := claimNames("a", perPhase-20, perPhase)
	w.Must(w.createAll(pending), "create claims")
	w.Must(w.sidecar.Kill(), "kill provisioner")
	w.Must(w.controller.Stop(w.Ctx), "stop pv-controller")
	w.inherited = w.driver.JournalEntries(journal.KindActive)
	w.driver.Server.ClearFaults()
	w.expectInherited(claimNames("a", 0, 13))
}

// load creates the claims of the phase from the number on, without the last 20. It deletes
// some claims while Pending and some once Bound.
func (w *swap) load(phase string, from int) {
	w.T.Helper()
	w.create(phase, from, 30)
	w.delete(claimNames(phase, from, 30)...)
	w.create(phase, 30, perPhase-20)
	bound := claimNames(phase, 30, perPhase-20)
	w.awaitAllBound(bound)
	w.mayGo(claimNames(phase, 30, 45)...)
	w.delete(claimNames(phase, 30, 45)...)
}

// phaseOfUpstream ends with SIGTERM.
func (w *swap) phaseOfUpstream() {
	w.T.Helper()
	began := len(w.driver.Server.Calls())
	created := w.unanswered("b", 0, 5, true)
	w.Must(w.driver.Inject(frequentFaults()), "inject faults")
	w.startUpstream("upstream")
	w.awaitAllBound(append(append(claimNames("a", 3, 10), claimNames("a", 11, 13)...), claimNames("a", perPhase-20, perPhase)...))
	pod := w.CreatePod("a-8")
	w.mayGo("a-5", "a-6")
	w.delete("a-5", "a-6")
	w.keep(true, "a-3", "a-4")
	w.keep(false, "a-7")
	w.keep(true, claimNames("a", 65, 70)...)
	w.keep(false, claimNames("a", 60, 65)...)
	w.load("b", 5)
	w.keep(true, claimNames("b", 50, 55)...)
	for _, name := range created {
		w.awaitStored(name)
	}
	w.delete(claimNames("b", 0, 3)...)
	w.awaitAllGone("upstream")
	w.Must(w.createAll(claimNames("b", perPhase-20, perPhase)), "create claims")
	_ = w.sidecar.Stop(w.Ctx) // csi-provisioner ends with an error when it loses its lease
	w.Must(w.controller.Stop(w.Ctx), "stop upstream's loops")
	w.driver.Server.ClearFaults()
	w.findLeaks(began)
	w.Must(w.Client.CoreV1().Pods(w.Namespace).Delete(w.Ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}), "delete pod")
}

func (w *swap) phaseOfOursAgain() {
	w.T.Helper()
	w.foresee()
	w.Must(w.driver.Inject(append(frequentFaults(), lostConnection)), "inject faults")
	w.startOurs("again")
	w.load("c", 0)
	w.Must(w.createAll(claimNames("c", perPhase-20, perPhase)), "create claims")
	w.mayGo(claimNames("b", 55, 60)...)
	w.mayGo("a-8")
	w.delete(claimNames("b", 55, 60)...)
	w.delete("a-8")
	w.awaitAllGone("ours again")
	w.awaitQuiet()
	w.claims.ExpectNoFinalizer(w.T)
}

// claimNames returns the names of claims of a phase.
func claimNames(phase string, from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%s-%d", phase, i))
	}
	return all
}
