package upstream_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/upstream"
)

const sidecar = 1 // the program of the worlds of pair

// bug is a way to a known bug of upstream.
type bug struct {
	options process.Options
	sidecar process.Build
	// shows leads to the bug, and reports whether the programs show it.
	shows func(w *world) bool
}

func (w *world) boundClaim(class string) {
	w.t.Helper()
	w.createClaim("c", class)
	w.settle()
	w.expect(mainClaim, map[string]string{"status/phase": "Bound"})
}

// orphaned reports whether a disk is left that no volume refers to.
func (w *world) orphaned() bool {
	for disk := range w.disks {
		found := false
		for _, object := range w.cluster.Objects() {
			found = found || object.Resource == "persistentvolumes" && strings.Contains(object.JSON, `"`+disk+`"`)
		}
		if !found {
			return true
		}
	}
	return false
}

func (w *world) terminating(path string) bool {
	return w.at(path, "metadata/deletionTimestamp") != ""
}

func isMethod(method, path string) func(process.Call) bool {
	return func(call process.Call) bool {
		return call.Request.Method == method && strings.HasPrefix(call.Request.Path, path)
	}
}

// lose loses the answer of the first call for which matches is true, and the call itself
// unless it takes effect, and then calls next.
func (w *world) lose(matches func(process.Call) bool, effect bool, next func()) {
	w.fails = func(call process.Call) *process.Answer {
		if !matches(call) {
			return nil
		}
		if w.fails = nil; effect {
			w.effect(call)
		}
		if next != nil {
			next()
		}
		return &process.Answer{Lost: true}
	}
}

func testBugs(t *testing.T, bugs map[string]bug) {
	t.Helper()
	for name, b := range bugs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if w := pair(t, b.options, b.sidecar); !b.shows(w) {
					t.Errorf("not as expected: disks %v, calls %v and %v", w.disks, w.created, w.deleted)
				}
			})
		})
	}
}

func TestReportedBugs(t *testing.T) {
	testBugs(t, map[string]bug{
		"external-provisioner#486: crash before the volume is recorded": {gateOn, upstream.Sidecar, func(w *world) bool {
			w.held = isMethod("POST", "/api/v1/persistentvolumes")
			w.createClaim("c", "delete")
			w.work()
			w.delete(mainClaim)
			w.held = nil
			w.start(sidecar, gateOn)
			w.settle()
			return w.orphaned()
		}},
		"external-provisioner#1469: volume created again while it is deleted": {
			gateOn, upstream.Sidecar, createdWhileDeleted,
		},
		"external-provisioner#1217: failed removal of the finalizer": {gateOn, upstream.OldSidecar, stuckAfterLostAnswers},
		"external-provisioner#1217 mended: removal is repeated": {
			gateOn, upstream.Sidecar, func(w *world) bool { return !stuckAfterLostAnswers(w) },
		},
		"finalizers of other programs stay": {
			gateOn, upstream.Sidecar, func(w *world) bool { return !takesForeignFinalizer(w) },
		},
		"KEP-2644 step 9: the volume is gone when the plugin looks": {
			gateOff, upstream.Sidecar, func(w *world) bool { return leaksPath(w, isMethod("GET", mainVolume)) },
		},
		"KEP-2644 step 10: the volume is being deleted": {
			gateOff, upstream.Sidecar, func(w *world) bool { return leaksPath(w, isMethod("PUT", mainVolume)) },
		},
		"KEP-2644 step 11: the sidecar takes the volume for deleted": {gateOff, upstream.Sidecar, volumeFirstLeaks},
		"KEP-2644 mended: the plugin deletes the volume": {
			gateOn, upstream.Sidecar, func(w *world) bool { return !leaksPath(w, isMethod("GET", mainVolume)) },
		},
		"KEP-2644 mended: the sidecar deletes the volume": {
			gateOn, upstream.Sidecar, func(w *world) bool { return !volumeFirstLeaks(w) },
		},
	})
}

// createdWhileDeleted has the sidecar see its own volume late, so that CreateVolume is called
// a second time, and takes effect while the volume is deleted.
func createdWhileDeleted(w *world) bool {
	for _, p := range w.programs {
		p.blind = []string{"persistentvolumes"}
	}
	w.createClaim("c", "delete")
	w.work()
	w.held = func(call process.Call) bool { return call.Create != "" || isMethod("PATCH", dynamic)(call) }
	w.patch(mainClaim, `{"metadata":{"labels":{"changed":"yes"}}}`)
	w.work()
	for _, p := range w.programs {
		p.blind = nil
	}
	w.work()
	w.delete(mainClaim)
	w.work()
	w.held = isMethod("PATCH", dynamic) // AlreadyExists comes before the finalizer is removed
	w.work()
	w.held = nil
	w.settle()
	return w.orphaned() && w.read(dynamic) == nil
}

// stuckAfterLostAnswers loses the answer to the deletion of the volume, then the request that
// removes the finalizer, when the cache of the sidecar is fresh.
func stuckAfterLostAnswers(w *world) bool {
	w.boundClaim("delete")
	w.lose(isMethod("DELETE", dynamic), true, func() {
		w.lose(func(call process.Call) bool {
			return isMethod("PATCH", dynamic)(call) || isMethod("PUT", dynamic)(call) &&
				!strings.Contains(call.Request.Body, external)
		}, false, nil)
	})
	w.delete(mainClaim)
	w.settle()
	return w.terminating(dynamic) && len(w.disks) == 0
}

// takesForeignFinalizer reports whether the sidecar removes the finalizer of another program.
func takesForeignFinalizer(w *world) bool {
	w.boundClaim("delete")
	w.patch(dynamic, `{"metadata":{"finalizers":["`+external+`","`+protection+`","example.com/other"]}}`)
	w.delete(mainClaim)
	w.settle()
	return w.at(dynamic, "metadata/finalizers") != "[example.com/other]"
}

// leaksPath deletes a volume of an in-tree plugin before its claim; held calls of the loops
// wait until the others have ended.
func leaksPath(w *world, held func(process.Call) bool) bool {
	w.disks["/disk"] = true
	w.post("/api/v1/persistentvolumes",
		`{"metadata":{"name":"pv","annotations":{"pv.kubernetes.io/provisioned-by":"kubernetes.io/host-path"}},
		"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"persistentVolumeReclaimPolicy":"Delete","hostPath":{"path":"/disk"}}}`)
	w.settle()
	w.boundClaim("")
	w.delete(mainVolume)
	w.settle()
	w.held = held
	w.delete(mainClaim)
	w.work()
	w.held = nil
	w.settle()
	return w.read(mainVolume) == nil && w.disks["/disk"]
}

func volumeFirstLeaks(w *world) bool {
	w.boundClaim("delete")
	w.delete(dynamic)
	w.settle()
	w.delete(mainClaim)
	w.settle()
	return w.read(dynamic) == nil && w.orphaned()
}
