package e2e

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
)

// methods are the calls of the driver that have a fault in every column.
var methods = []string{"CreateVolume", "DeleteVolume", "ControllerGetCapabilities", "Probe"}

// moments are the columns in which the provisioner is killed with SIGKILL: before the
// fault strikes, while the call is under way, and once it was answered.
var moments = []string{"before", "during", "after"}

// blow is what goes wrong with a call.
type blow struct {
	name  string
	fault csimock.Fault
	// restarts: the driver is stopped and started again.
	restarts bool
}

func blows() []blow {
	var all []blow
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		all = append(all, blow{name: code.String(), fault: csimock.Fault{Code: code}})
	}
	return append(all,
		blow{name: "hangs", fault: csimock.Fault{Hang: true}},
		blow{name: "does it, then fails", fault: csimock.Fault{Code: codes.Internal, After: true}},
		blow{name: "connection lost", fault: csimock.Fault{Disconnect: true, After: true}},
		blow{name: "driver restarted", fault: csimock.Fault{Hang: true, After: true}, restarts: true})
}

// rowsAtOnce is how many rows of the matrix run at the same time. They mostly wait.
const rowsAtOnce = 5

// TestFaultMatrixLosesNoVolume has every fault in every method while the provisioner is
// killed, and while something else happens to claim, namespace, leader, journal or class.
// A claim that stays gets its volume, a deleted claim goes within seconds, and the driver
// has the volumes that the API and the journal have.
func TestFaultMatrixLosesNoVolume(t *testing.T) {
	t.Parallel()
	cells := newTable()
	var rows errgroup.Group
	rows.SetLimit(rowsAtOnce)
	for i, b := range blows() {
		rows.Go(func() error {
			t.Run(b.name, func(t *testing.T) {
				r := newRig(t, b)
				r.number, r.cells = i, cells
				for _, moment := range moments {
					r.cell(moment, func() { r.strike(moment) })
				}
				for _, c := range columns() {
					r.cell(c.name, func() { r.strikeWhile(c) })
				}
				r.stop()
				r.expectNothingForgotten()
			})
			return nil
		})
	}
	_ = rows.Wait() // the rows report by their tests
	t.Logf("calls with a fault, and unresolved journal entries in brackets:\n%s", cells)
	cells.expectFull(t)
}

// rig is a driver in this process, and a provisioner as a process that is started
// again whenever it ends.
type rig struct {
	*scene
	blow
	kubelet
	// standby leads after the leader was replaced.
	standby *kubelet
	driver  *flaky
	// number is that of the row, cells what was seen in it.
	number int
	cells  *table
	claims *claimWatch
	// unresolved are the claims that may have an unresolved entry; unlogged those that
	// are served without an entry.
	unresolved, unlogged sets.Set[types.UID]
}

// newRig starts them; flags are those of the provisioner.
func newRig(t *testing.T, b blow, flags ...string) *rig {
	t.Helper()
	s := enterFor(t, shared(t, setup{honor: true}), 6*patience)
	r := &rig{scene: s, blow: b, driver: newFlaky(s, b.restarts), claims: s.watchClaims(),
		unresolved: sets.New[types.UID](), unlogged: sets.New[types.UID]()}
	r.kubelet = kubelet{scene: s, socket: r.driver.socket, args: flags}
	r.letSecretsBeRead()
	r.createClass("plain")
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *rig) className(name string) string {
	return r.namespace + "-" + strings.ReplaceAll(name, " ", "-")
}

func (r *rig) createClass(name string, change ...func(*storagev1.StorageClass)) {
	r.t.Helper()
	class := newClass(r.className(name), r.driver.config.Name, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	for _, f := range change {
		f(&class)
	}
	_, err := r.client.StorageV1().StorageClasses().Create(r.ctx, &class, metav1.CreateOptions{})
	r.must(err, "create class")
}

// cast are the claims of one moment.
type cast struct {
	kept, dropped, victim *v1.PersistentVolumeClaim
	// doomed is the victim's volume.
	doomed *v1.PersistentVolume
}

// enter makes the claims; kept and dropped, which is in the namespace, wait for their
// class.
func (r *rig) enter(moment, namespace string) cast {
	r.t.Helper()
	var c cast
	name := strings.ReplaceAll(moment, " ", "-")
	c.victim = r.createClaim("victim-"+name, r.className("plain"))
	c.doomed = r.awaitBound(c.victim.Name)
	c.kept = r.createClaim("kept-"+name, r.className(moment))
	dropped := r.newClaim("dropped-"+name, r.className(moment))
	dropped.Namespace = namespace
	var err error
	c.dropped, err = r.client.CoreV1().PersistentVolumeClaims(namespace).Create(r.ctx, dropped, metav1.CreateOptions{})
	r.must(err, "create claim")
	return c
}

// targets are the calls that are struck because of the claims.
func (c cast) targets() []target {
	return []target{{"CreateVolume", "pvc-" + string(c.kept.UID)}, {"CreateVolume", "pvc-" + string(c.dropped.UID)}, {"DeleteVolume", handle(c.doomed)}}
}

// target is a call of a method, about the volume or about none.
type target struct{ method, volume string }

// processCalls are the calls that a provisioner begins with.
func processCalls() []target {
	return []target{{"Probe", ""}, {"ControllerGetCapabilities", ""}}
}

func (r *rig) strike(moment string) {
	r.t.Helper()
	c := r.enter(moment, r.namespace)
	switch moment {
	case "before":
		r.kill()
		r.inject(0, append(c.targets(), processCalls()...)...)
		r.play(c, moment)
		r.start()
		r.await("struck", c.targets()...)
		r.drop(c)
		r.await("struck", processCalls()...)
	case "during":
		r.killedOnceSeen(c, moment, "struck", time.Hour)
	case "after":
		r.killedOnceSeen(c, moment, "answered", 0)
	}
	r.settle(c)
}

// play has the claims served, and the victim's volume deleted.
func (r *rig) play(c cast, moment string, change ...func(*storagev1.StorageClass)) {
	r.t.Helper()
	r.createClass(moment, change...)
	r.deleteClaim(c.victim.Name)
}

// killedOnceSeen kills the provisioner once all calls for the claims are as far as
// that, and then once each of the calls that it begins with is. The claim is deleted
// just before, and goes while no provisioner runs.
func (r *rig) killedOnceSeen(c cast, moment, seen string, latency time.Duration) {
	r.t.Helper()
	r.inject(latency, c.targets()...)
	r.play(c, moment)
	r.await(seen, c.targets()...)
	deleted := time.Now()
	r.deleteClaim(c.dropped.Name)
	r.kill()
	r.expectGone(c.dropped, deleted)
	r.expectNothingForgotten()
	for _, call := range processCalls() {
		r.driver.arm()
		r.inject(latency, call)
		r.start()
		r.await(seen, call)
		r.kill()
		r.expectNothingForgotten()
	}
	r.start()
}

// inject has each call struck once. The latency keeps it under way.
func (r *rig) inject(latency time.Duration, targets ...target) {
	r.t.Helper()
	faults := make([]csimock.Fault, 0, len(targets))
	for _, t := range targets {
		f := r.fault
		f.Method, f.Volume, f.Times, f.Latency = t.method, t.volume, 1, latency
		faults = append(faults, f)
	}
	r.must(r.driver.inject(faults), "inject faults")
}

func (r *rig) await(seen string, targets ...target) {
	r.t.Helper()
	for _, t := range targets {
		select {
		case <-r.driver.latch(seen, t):
		case <-r.ctx.Done():
			r.t.Fatalf("%s %s was not %s", t.method, t.volume, seen)
		}
	}
}

// TestFaultMatrixFindsLeakWithoutJournal shows that the matrix can fail.
func TestFaultMatrixFindsLeakWithoutJournal(t *testing.T) {
	t.Parallel()
	r := newRig(t, blow{name: "does it, then fails", fault: csimock.Fault{Code: codes.Internal, After: true}},
		"--feature-gates=ProvisioningJournal=false")
	c := r.enter("during", r.namespace)
	r.inject(time.Hour, c.targets()...)
	r.play(c, "during")
	r.await("struck", c.targets()...)
	r.deleteClaim(c.dropped.Name)
	r.kill()
	r.start()
	r.awaitBound(c.kept.Name)
	r.awaitClaimGone(c.dropped.Name)
	r.awaitVolumeGone(c.doomed.Name)
	if forgotten := r.forgotten(); len(forgotten) != 1 || forgotten[0] != "pvc-"+string(c.dropped.UID) {
		t.Errorf("the driver has %v that nothing knows, want the volume of the deleted claim", forgotten)
	}
}
