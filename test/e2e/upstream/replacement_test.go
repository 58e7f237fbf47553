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
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// perPhase is the number of claims per phase; a phase is the run of one pair of programs.
const perPhase = 100

// TestSwapToUpstreamAndBackLosesNoVolume runs our programs, upstream's and ours again on
// the same objects. Each pair is ended under load. Nothing hangs, no volume that upstream
// served or an administrator keeps is deleted, and the only volumes without an object are
// those with an unresolved entry and those that upstream leaked.
func TestSwapToUpstreamAndBackLosesNoVolume(t *testing.T) {
	t.Parallel()
	r := newReplacement(t)
	r.runOurs()
	r.runUpstream()
	r.runOursAgain()
	r.expectExplainedOrphans()
	r.report()
}

// replacement is a driver whose provisioner is replaced.
type replacement struct {
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

func newReplacement(t *testing.T) *replacement {
	t.Helper()
	s := harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(4*harness.Timeout))
	r := &replacement{Session: s, driver: harness.NewScriptedDriver(s, false), claims: s.WatchClaims(),
		deleted: map[string]time.Time{}, slowest: map[string]time.Duration{}, protected: map[string]string{}}
	s.Must(s.GrantUpstream(s.Ctx), "grant upstream's rights")
	for name, policy := range map[string]v1.PersistentVolumeReclaimPolicy{
		"delete": v1.PersistentVolumeReclaimDelete, "retain": v1.PersistentVolumeReclaimRetain,
	} {
		class := harness.NewClass(s.Namespace+"-"+name, r.driver.Config.Name, policy, storagev1.VolumeBindingImmediate)
		s.CreateStorageClass(class)
	}
	t.Cleanup(func() {
		for _, process := range []*sandbox.Process{r.controller, r.sidecar} {
			if process == nil {
				continue
			}
			_ = process.Kill()
			if text, _ := os.ReadFile(process.LogFile()); t.Failed() {
				t.Logf("the end of the log of %s:\n%s", process.Name(), text[max(0, len(text)-4096):])
			}
		}
	})
	return r
}

// sidecarFlags are the flags of both provisioners. The lease of a killed one expires soon.
var sidecarFlags = []string{
	"--leader-election", "--leader-election-namespace=" + deploy.Namespace, "--leader-election-lease-duration=8s",
	"--leader-election-renew-deadline=4s", "--leader-election-retry-period=500ms",
	"--timeout=2s", "--retry-interval-start=100ms", "--retry-interval-max=1s",
	"--feature-gates=ReleaseLeaderElectionOnExit=true",
}

func (r *replacement) sidecarOf(name string) sandbox.Controller {
	return sandbox.Controller{Name: name, HonorReclaimPolicy: true, Args: sidecarFlags,
		Env: []string{"NAMESPACE=" + deploy.Namespace}}
}

func (r *replacement) startOurs(name string) {
	r.T.Helper()
	var err error
	r.controller, err = r.Plane.StartPVController(r.Ctx, sandbox.Controller{Name: "loops-" + name,
		HonorReclaimPolicy: true})
	r.Must(err, "start pv-controller")
	r.sidecar, err = r.Plane.StartProvisioner(r.Ctx, &sandbox.Driver{Socket: r.driver.Socket},
		r.sidecarOf("sidecar-"+name))
	r.Must(err, "start provisioner")
}

func (r *replacement) startUpstream(name string) {
	r.T.Helper()
	var err error
	r.controller, err = r.Plane.StartUpstreamLoops(r.Ctx, sandbox.Controller{Name: "loops-" + name})
	r.Must(err, "start upstream's loops")
	r.sidecar, err = r.Plane.StartUpstreamProvisioner(r.Ctx, &sandbox.Driver{Socket: r.driver.Socket},
		r.sidecarOf("sidecar-"+name))
	r.Must(err, "start upstream's sidecar")
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

// createHanging creates claims, before any program runs, whose CreateVolume calls hang. With
// after, the volume is created before the call hangs.
func (r *replacement) createHanging(phase string, from, to int, after bool) []string {
	r.T.Helper()
	created := r.create(phase, from, to)
	var hanging []csimock.Fault
	for _, name := range created {
		hanging = append(hanging, csimock.Fault{Method: "CreateVolume", Volume: r.volumeOf(name), Hang: true, After: after})
	}
	r.Must(r.driver.Inject(hanging), "inject faults")
	return created
}

// runOurs ends with SIGKILL.
func (r *replacement) runOurs() {
	r.T.Helper()
	created := r.createHanging("a", 0, 10, true)
	r.createHanging("a", 10, 13, false)
	r.Must(r.driver.Inject(append(frequentFaults(), lostConnection)), "inject faults")
	r.startOurs("first")
	for _, name := range created {
		r.awaitStored(name)
	}
	r.delete(claimNames("a", 0, 3)...)
	r.delete("a-10")
	r.load("a", 13)
	r.awaitAllGone("ours")
	pending := claimNames("a", perPhase-20, perPhase)
	r.Must(r.createAll(pending), "create claims")
	r.Must(r.sidecar.Kill(), "kill provisioner")
	r.Must(r.controller.Stop(r.Ctx), "stop pv-controller")
	r.inherited = r.driver.JournalEntries(journal.KindActive)
	r.driver.Server.ClearFaults()
	r.expectInherited(claimNames("a", 0, 13))
}

// load creates the claims of the phase from the number on, without the last 20. It deletes
// some claims while Pending and some once Bound.
func (r *replacement) load(phase string, from int) {
	r.T.Helper()
	r.create(phase, from, 30)
	r.delete(claimNames(phase, from, 30)...)
	r.create(phase, 30, perPhase-20)
	bound := claimNames(phase, 30, perPhase-20)
	r.awaitAllBound(bound)
	r.expectReclaimed(claimNames(phase, 30, 45)...)
	r.delete(claimNames(phase, 30, 45)...)
}

// runUpstream ends with SIGTERM.
func (r *replacement) runUpstream() {
	r.T.Helper()
	began := len(r.driver.Server.Calls())
	created := r.createHanging("b", 0, 5, true)
	r.Must(r.driver.Inject(frequentFaults()), "inject faults")
	r.startUpstream("upstream")
	r.awaitAllBound(append(append(claimNames("a", 3, 10), claimNames("a", 11, 13)...),
		claimNames("a", perPhase-20, perPhase)...))
	pod := r.CreatePod("a-8")
	r.expectReclaimed("a-5", "a-6")
	r.delete("a-5", "a-6")
	r.retain(true, "a-3", "a-4")
	r.retain(false, "a-7")
	r.retain(true, claimNames("a", 65, 70)...)
	r.retain(false, claimNames("a", 60, 65)...)
	r.load("b", 5)
	r.retain(true, claimNames("b", 50, 55)...)
	for _, name := range created {
		r.awaitStored(name)
	}
	r.delete(claimNames("b", 0, 3)...)
	r.awaitAllGone("upstream")
	r.Must(r.createAll(claimNames("b", perPhase-20, perPhase)), "create claims")
	_ = r.sidecar.Stop(r.Ctx) // csi-provisioner ends with an error when it loses its lease
	r.Must(r.controller.Stop(r.Ctx), "stop upstream's loops")
	r.driver.Server.ClearFaults()
	r.findLeaks(began)
	r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64)}), "delete pod")
}

func (r *replacement) runOursAgain() {
	r.T.Helper()
	r.recordExpectations()
	r.Must(r.driver.Inject(append(frequentFaults(), lostConnection)), "inject faults")
	r.startOurs("again")
	r.load("c", 0)
	r.Must(r.createAll(claimNames("c", perPhase-20, perPhase)), "create claims")
	r.expectReclaimed(claimNames("b", 55, 60)...)
	r.expectReclaimed("a-8")
	r.delete(claimNames("b", 55, 60)...)
	r.delete("a-8")
	r.awaitAllGone("ours again")
	r.awaitFinished()
	r.claims.ExpectNoFinalizer(r.T)
}

// claimNames returns the names of claims of a phase.
func claimNames(phase string, from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("%s-%d", phase, i))
	}
	return all
}
