package faults

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// methods are the CSI methods that have a fault in every column.
var methods = []string{"CreateVolume", "DeleteVolume", "ControllerGetCapabilities", "Probe"}

// moments are the columns in which the provisioner is killed with SIGKILL: before the
// fault, while the call is pending, and once the call was answered.
var moments = []string{"before", "during", "after"}

// callFault is a fault of a call.
type callFault struct {
	name  string
	fault csimock.Fault
	// restarts the driver on the fault.
	restarts bool
}

func callFaults() []callFault {
	var all []callFault
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		all = append(all, callFault{name: code.String(), fault: csimock.Fault{Code: code}})
	}
	return append(all,
		callFault{name: "hangs", fault: csimock.Fault{Hang: true}},
		callFault{name: "does it, then fails", fault: csimock.Fault{Code: codes.Internal, After: true}},
		callFault{name: "connection lost", fault: csimock.Fault{Disconnect: true, After: true}},
		callFault{name: "driver restarted", fault: csimock.Fault{Hang: true, After: true}, restarts: true})
}

// rowsAtOnce is the number of rows that run at the same time. Rows mostly wait.
const rowsAtOnce = 5

// rowTimeout bounds a row.
const rowTimeout = 6 * harness.Timeout

// TestFaultMatrixLosesNoVolume causes every fault in every method while the provisioner is
// killed, and while claim, namespace, leader, journal or class change. Every kept claim
// gets its volume, every dropped claim is deleted within seconds, and driver, API and
// journal have the same volumes.
func TestFaultMatrixLosesNoVolume(t *testing.T) {
	c := harness.Join(t, harness.Setup{}).Cluster
	cells := newTable()
	var rows errgroup.Group
	rows.SetLimit(rowsAtOnce)
	for i, b := range callFaults() {
		rows.Go(func() error {
			t.Run(b.name, func(t *testing.T) {
				r := newFaultTest(harness.NewSession(t, c, harness.Within(rowTimeout)), b)
				r.number, r.cells = i, cells
				for _, moment := range moments {
					r.cell(moment, func() { r.runMoment(moment) })
				}
				for _, c := range columns() {
					r.cell(c.name, func() { r.runColumn(c) })
				}
				r.Stop()
				r.expectNoLeak()
			})
			return nil
		})
	}
	_ = rows.Wait() // the rows report through their tests
	t.Logf("calls with a fault, and unresolved journal entries in brackets:\n%s", cells)
	cells.expectFull(t)
}

// faultTest is a driver in this process and a provisioner process that restarts when it ends.
type faultTest struct {
	*harness.Session
	callFault
	harness.Supervisor
	// standby leads after replaceLeader.
	standby *harness.Supervisor
	driver  *harness.ScriptedDriver
	// number of the row; cells is the table of all rows.
	number int
	cells  *table
	claims *harness.ClaimWatch
	// unresolved are the claims that may have an unresolved entry, unlogged the claims
	// served without an entry.
	unresolved, unlogged sets.Set[types.UID]
}

// newFaultTest starts driver and provisioner; flags are flags of the provisioner.
func newFaultTest(s *harness.Session, b callFault, flags ...string) *faultTest {
	s.T.Helper()
	r := &faultTest{Session: s, callFault: b, driver: harness.NewScriptedDriver(s, b.restarts), claims: s.WatchClaims(),
		unresolved: sets.New[types.UID](), unlogged: sets.New[types.UID]()}
	r.Supervisor = harness.Supervisor{Session: s, Socket: r.driver.Socket, Args: flags}
	r.GrantSecrets()
	r.createClass("plain")
	r.Start()
	s.T.Cleanup(r.Kill)
	return r
}

func (r *faultTest) className(name string) string {
	return r.Namespace + "-" + strings.ReplaceAll(name, " ", "-")
}

func (r *faultTest) createClass(name string, change ...func(*storagev1.StorageClass)) {
	r.T.Helper()
	class := harness.NewClass(r.className(name), r.driver.Config.Name, v1.PersistentVolumeReclaimDelete,
		storagev1.VolumeBindingImmediate)
	for _, f := range change {
		f(&class)
	}
	r.CreateStorageClass(class)
}

// claimSet has the claims of one moment.
type claimSet struct {
	kept, dropped, victim *v1.PersistentVolumeClaim
	// victimVolume is the volume of victim.
	victimVolume *v1.PersistentVolume
}

// createClaims creates the claims. The claims kept and dropped wait for their class;
// dropped is in the namespace.
func (r *faultTest) createClaims(moment, namespace string) claimSet {
	r.T.Helper()
	var c claimSet
	name := strings.ReplaceAll(moment, " ", "-")
	c.victim = r.CreateClaim("victim-"+name, r.className("plain"))
	c.victimVolume = r.AwaitBound(c.victim.Name)
	c.kept = r.CreateClaim("kept-"+name, r.className(moment))
	dropped := r.NewClaim("dropped-"+name, r.className(moment))
	dropped.Namespace = namespace
	var err error
	c.dropped, err = r.Client.CoreV1().PersistentVolumeClaims(namespace).Create(r.Ctx, dropped, metav1.CreateOptions{})
	r.Must(err, "create claim")
	return c
}

// targets returns the calls for the claims, which get the fault.
func (c claimSet) targets() []harness.Call {
	return []harness.Call{
		{Method: "CreateVolume", Volume: "pvc-" + string(c.kept.UID)},
		{Method: "CreateVolume", Volume: "pvc-" + string(c.dropped.UID)},
		{Method: "DeleteVolume", Volume: harness.Handle(c.victimVolume)},
	}
}

// processCalls returns the first calls of a provisioner.
func processCalls() []harness.Call {
	return []harness.Call{{Method: "Probe"}, {Method: "ControllerGetCapabilities"}}
}

func (r *faultTest) runMoment(moment string) {
	r.T.Helper()
	c := r.createClaims(moment, r.Namespace)
	switch moment {
	case "before":
		r.Kill()
		r.inject(0, append(c.targets(), processCalls()...)...)
		r.startCalls(c, moment)
		r.Start()
		r.await("faulted", c.targets()...)
		r.deleteDropped(c)
		r.await("faulted", processCalls()...)
	case "during":
		r.killOnceSeen(c, moment, "faulted", time.Hour)
	case "after": // the PersistentVolume may have been announced, so that a user may keep the volume of the deleted claim
		r.unresolved.Insert(c.dropped.UID)
		r.killOnceSeen(c, moment, "answered", 0)
	}
	r.awaitConsistent(c)
}

// startCalls creates the class, so that the claims are served, and deletes victim.
func (r *faultTest) startCalls(c claimSet, moment string, change ...func(*storagev1.StorageClass)) {
	r.T.Helper()
	r.createClass(moment, change...)
	r.DeleteClaim(c.victim.Name)
}

// killOnceSeen kills the provisioner once all calls for the claims have reached the
// given progress, and again once each of its first calls has. The dropped claim is deleted just
// before the kill, while no other provisioner runs.
func (r *faultTest) killOnceSeen(c claimSet, moment, seen string, latency time.Duration) {
	r.T.Helper()
	r.inject(latency, c.targets()...)
	r.startCalls(c, moment)
	r.await(seen, c.targets()...)
	deleted := time.Now()
	r.DeleteClaim(c.dropped.Name)
	r.Kill()
	r.expectGone(c.dropped, deleted)
	r.expectNoLeak()
	for _, call := range processCalls() {
		r.driver.ForgetSeen()
		r.inject(latency, call)
		r.Start()
		r.await(seen, call)
		r.Kill()
		r.expectNoLeak()
	}
	r.Start()
}

// inject gives each call one fault. The latency keeps the call pending.
func (r *faultTest) inject(latency time.Duration, targets ...harness.Call) {
	r.T.Helper()
	faults := make([]csimock.Fault, 0, len(targets))
	for _, t := range targets {
		f := r.fault
		f.Method, f.Volume, f.Times, f.Latency = t.Method, t.Volume, 1, latency
		faults = append(faults, f)
	}
	r.Must(r.driver.Inject(faults), "inject faults")
}

func (r *faultTest) await(seen string, targets ...harness.Call) {
	r.T.Helper()
	for _, t := range targets {
		select {
		case <-r.driver.Seen(seen, t):
		case <-r.Ctx.Done():
			r.T.Fatalf("waiting until %s %s was %s", t.Method, t.Volume, seen)
		}
	}
}

// TestFaultMatrixFindsLeakWithoutJournal shows that the matrix can fail.
func TestFaultMatrixFindsLeakWithoutJournal(t *testing.T) {
	r := newFaultTest(harness.Join(t, harness.Setup{}, harness.Within(rowTimeout)),
		callFault{name: "does it, then fails", fault: csimock.Fault{Code: codes.Internal, After: true}},
		"--feature-gates=ProvisioningJournal=false")
	c := r.createClaims("during", r.Namespace)
	r.inject(time.Hour, c.targets()...)
	r.startCalls(c, "during")
	r.await("faulted", c.targets()...)
	r.DeleteClaim(c.dropped.Name)
	r.Kill()
	r.Start()
	r.AwaitBound(c.kept.Name)
	r.AwaitClaimGone(c.dropped.Name)
	r.AwaitVolumeGone(c.victimVolume.Name)
	if leaked := r.leaked(); len(leaked) != 1 || leaked[0] != "pvc-"+string(c.dropped.UID) {
		t.Errorf("leaked %v, want the volume of the deleted claim only", leaked)
	}
}

// The deletion of a namespace deletes both at once, and the process that requested the
// clone may have ended.
func TestCloneAndSourceDeletedTogetherDoNotDeadlock(t *testing.T) {
	r := newFaultTest(harness.Join(t, harness.Setup{}, harness.Within(rowTimeout)),
		callFault{fault: csimock.Fault{Code: codes.Unavailable, After: true}})
	r.CreateClaim("origin", r.className("plain"))
	origin := r.AwaitBound("origin")
	clone := r.CreateClaim("clone", r.className("later"), harness.CloneOf("origin"))
	begun := harness.Call{Method: "CreateVolume", Volume: "pvc-" + string(clone.UID)}
	r.inject(0, begun)
	r.createClass("later")
	r.await("answered", begun)
	r.Kill()
	r.DeleteClaim("clone")
	r.DeleteClaim("origin")
	r.Start()
	r.AwaitClaimGone("clone")
	r.AwaitClaimGone("origin")
	r.AwaitVolumeGone(origin.Name)
	r.awaitNoDifference() // from here on the clone has a PersistentVolume, or had one
	r.AwaitVolumeGone(begun.Volume)
	if left := r.driver.Volumes(); len(left) > 0 {
		t.Errorf("the driver has %v", left)
	}
}
