package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// methods are the calls of the driver that are struck.
var methods = []string{"CreateVolume", "DeleteVolume", "ControllerGetCapabilities", "Probe"}

// moments are when the provisioner is killed with SIGKILL: before the fault strikes,
// while the call is under way, and once it was answered.
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

// TestEveryFaultAtEveryMomentEndsWithTheVolumesThatTheAPIKnows: for every fault of
// every call and every moment at which the provisioner is killed, a claim that stays
// gets its volume, one that is deleted on the way leaves none, and a volume whose
// deletion was struck is gone.
func TestEveryFaultAtEveryMomentEndsWithTheVolumesThatTheAPIKnows(t *testing.T) {
	t.Parallel()
	cells := &table{rows: map[string]map[string]string{}}
	t.Run("faults", func(t *testing.T) {
		for _, b := range blows() {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, b, true)
				for _, moment := range moments {
					r.strike(moment)
					cells.set(b.name, moment, !t.Failed())
				}
			})
		}
	})
	t.Logf("volumes in the driver are those that the API knows:\n%s", cells)
}

// table is what was seen: one row per fault, one column per moment; each fault
// struck all methods.
type table struct {
	mu   sync.Mutex
	rows map[string]map[string]string
}

func (c *table) set(row, column string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows[row] == nil {
		c.rows[row] = map[string]string{}
	}
	c.rows[row][column] = map[bool]string{true: "yes", false: "NO"}[ok]
}

func (c *table) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "| %s | fault | %s |\n", strings.Join(methods, ", "), strings.Join(moments, " | "))
	for _, row := range slices.Sorted(maps.Keys(c.rows)) {
		fmt.Fprintf(&text, "| each | %s | %s | %s | %s |\n", row, c.rows[row]["before"], c.rows[row]["during"], c.rows[row]["after"])
	}
	return text.String()
}

// rig is a driver in this process, and a provisioner as a process that is started
// again whenever it ends.
type rig struct {
	*scene
	blow
	kubelet
	driver *flaky
}

// newRig makes them; honor is the gate, without which no claim is held.
func newRig(t *testing.T, b blow, honor bool) *rig {
	t.Helper()
	s := enter(t, shared(t, setup{honor: true}))
	r := &rig{scene: s, blow: b, driver: newFlaky(s, b.restarts)}
	r.kubelet = kubelet{scene: s, socket: r.driver.socket, honor: honor}
	r.createClass("plain")
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *rig) className(name string) string { return r.namespace + "-" + name }

func (r *rig) createClass(name string) {
	r.t.Helper()
	class := newClass(r.className(name), r.driver.config.Name, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	_, err := r.client.StorageV1().StorageClasses().Create(r.ctx, &class, metav1.CreateOptions{})
	r.must(err, "create class")
}

// cast are the claims of one moment.
type cast struct {
	kept, dropped, victim *v1.PersistentVolumeClaim
	// doomed is the victim's volume.
	doomed *v1.PersistentVolume
}

// enter makes the claims; kept and dropped wait for their class.
func (r *rig) enter(moment string) cast {
	r.t.Helper()
	var c cast
	c.victim = r.createClaim("victim-"+moment, r.className("plain"))
	c.doomed = r.awaitBound(c.victim.Name)
	c.kept = r.createClaim("kept-"+moment, r.className(moment))
	c.dropped = r.createClaim("dropped-"+moment, r.className(moment))
	return c
}

// targets are the calls that are struck because of the claims.
func (c cast) targets() []target {
	return []target{{"CreateVolume", "pvc-" + string(c.kept.UID)}, {"CreateVolume", "pvc-" + string(c.dropped.UID)}, {"DeleteVolume", handle(c.doomed)}}
}

// target is a call of a method, about the volume or about none.
type target struct{ method, volume string }

func (r *rig) strike(moment string) {
	r.t.Helper()
	c := r.enter(moment)
	switch moment {
	case "before":
		r.kill()
		r.inject(0, append(c.targets(), target{"Probe", ""}, target{"ControllerGetCapabilities", ""})...)
		r.play(c, moment)
		r.start()
		r.await("struck", c.targets()...)
		r.deleteClaim(c.dropped.Name)
		r.await("struck", target{"Probe", ""}, target{"ControllerGetCapabilities", ""})
	case "during":
		r.killedOnceSeen(c, moment, "struck", time.Hour)
	case "after":
		r.killedOnceSeen(c, moment, "answered", 0)
	}
	r.settle(c)
}

// play has the claims served, and the victim's volume deleted.
func (r *rig) play(c cast, moment string) {
	r.t.Helper()
	r.createClass(moment)
	r.deleteClaim(c.victim.Name)
}

// killedOnceSeen kills the provisioner once all calls for the claims are as far as
// that, and then once each of the calls that it begins with is.
func (r *rig) killedOnceSeen(c cast, moment, seen string, latency time.Duration) {
	r.t.Helper()
	r.inject(latency, c.targets()...)
	r.play(c, moment)
	r.await(seen, c.targets()...)
	r.deleteClaim(c.dropped.Name)
	r.kill()
	for _, method := range []string{"Probe", "ControllerGetCapabilities"} {
		r.driver.arm()
		r.inject(latency, target{method, ""})
		r.start()
		r.await(seen, target{method, ""})
		r.kill()
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

// settle waits for the end and compares the driver with the API.
func (r *rig) settle(c cast) {
	r.t.Helper()
	r.awaitEnd(c)
	if stored, known := r.driver.volumes(), r.known(); !maps.Equal(stored, known) {
		r.t.Errorf("the driver has %v, the API knows %v", stored, known)
	}
	r.driver.arm()
}

func (r *rig) awaitEnd(c cast) {
	r.t.Helper()
	r.awaitBound(c.kept.Name)
	r.awaitClaimGone(c.dropped.Name)
	r.awaitVolumeGone("pvc-" + string(c.dropped.UID))
	r.awaitVolumeGone(c.doomed.Name)
}

// known are the names of the driver's volumes in the API, by handle.
func (r *rig) known() map[string]string {
	r.t.Helper()
	list, err := r.client.CoreV1().PersistentVolumes().List(r.ctx, metav1.ListOptions{})
	r.must(err, "list volumes")
	known := map[string]string{}
	for i := range list.Items {
		if v := &list.Items[i]; v.Spec.CSI != nil && v.Spec.CSI.Driver == r.driver.config.Name {
			known[handle(v)] = v.Name
		}
	}
	return known
}

// TestWithoutTheHoldAVolumeIsForgottenInTheMatrix shows that the matrix can fail.
func TestWithoutTheHoldAVolumeIsForgottenInTheMatrix(t *testing.T) {
	t.Parallel()
	r := newRig(t, blow{name: "does it, then fails", fault: csimock.Fault{Code: codes.Internal, After: true}}, false)
	c := r.enter("during")
	r.killedOnceSeen(c, "during", "struck", time.Hour)
	r.awaitEnd(c)
	leaked := r.driver.volumes()
	for handle := range r.known() {
		delete(leaked, handle)
	}
	if len(leaked) != 1 {
		t.Errorf("the driver has %v that the API does not know, want the volume of the claim that was deleted", leaked)
	}
}
