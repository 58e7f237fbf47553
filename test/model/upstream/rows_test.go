package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/upstream"
)

// TestRowsThatUpstreamFails has the situations in which upstream leaks, loses or hangs with
// the gate on, and that ours survives.
func TestRowsThatUpstreamFails(t *testing.T) {
	testRows(t, failedRows)
}

func TestRowsThatUpstreamKeeps(t *testing.T) {
	testRows(t, keptRows)
}

func testRows(t *testing.T, rows map[string]func(w *world) bool) {
	t.Helper()
	bugs := map[string]bug{}
	for name, shows := range rows {
		bugs[name] = bug{options: gateOn, sidecar: upstream.Sidecar, shows: shows}
	}
	testBugs(t, bugs)
}

var failedRows = map[string]func(w *world) bool{
	"policy becomes Delete, volume deleted at once": func(w *world) bool {
		w.createVolume("pv", "Retain")
		w.settle()
		w.boundClaim("")
		w.patch(mainVolume, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		w.delete(mainVolume) // before the sidecar adds its finalizer
		w.settle()
		w.delete(mainClaim)
		w.settle()
		return w.read(mainVolume) == nil && w.orphaned()
	},
	"in-tree volume without finalizer is never released": func(w *world) bool {
		w.post("/api/v1/persistentvolumes",
			`{"metadata":{"name":"pv","annotations":{"pv.kubernetes.io/provisioned-by":"kubernetes.io/host-path"}},
			"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},"persistentVolumeReclaimPolicy":"Retain","hostPath":{"path":"/disk"}}}`)
		w.settle()
		w.boundClaim("")
		w.delete(mainVolume)
		w.patch(mainVolume, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		w.delete(mainClaim)
		w.settle()
		return w.read(mainClaim) == nil && w.terminating(mainVolume) && w.at(mainVolume, "status/phase") == "Bound"
	},
	"available volume keeps the finalizer": func(w *world) bool {
		w.createVolume("pv", "Delete")
		w.settle()
		w.boundClaim("")
		w.delete(mainClaim)
		w.held = func(call process.Call) bool { return call.Delete != "" }
		w.work()
		w.patch(mainVolume, `{"spec":{"claimRef":null}}`)
		w.fails = func(call process.Call) *process.Answer {
			if call.Delete != "" {
				return &process.Answer{Code: codes.Internal}
			}
			return nil
		}
		w.held = nil
		w.settle()
		w.delete(mainVolume)
		w.settle()
		return w.terminating(mainVolume) && w.at(mainVolume, "metadata/finalizers") == "["+external+"]"
	},
	"dynamic volume deleted before it is bound": func(w *world) bool {
		w.programs[0].blind = []string{"persistentvolumes"}
		w.createClaim("c", "delete")
		w.work()
		w.delete(dynamic)
		w.programs[0].blind = nil
		w.settle()
		return w.terminating(dynamic) && w.at(mainClaim, "status/phase") == "Pending"
	},
	"failed volume is never reclaimed": func(w *world) bool {
		w.createVolume("pv", "Recycle")
		w.settle()
		w.boundClaim("")
		w.delete(mainClaim)
		w.settle()
		w.patch(mainVolume, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		w.settle()
		return w.at(mainVolume, "status/phase") == "Failed" && len(w.deleted) == 0
	},
	"wrong phase deletes data of a live claim": func(w *world) bool {
		w.boundClaim("delete")
		w.programs[0].blind = []string{"persistentvolumes"}
		w.send("PATCH", dynamic+"/status", "application/merge-patch+json", `{"status":{"phase":"Released"}}`)
		w.work()
		return w.at(mainClaim, "status/phase") == "Bound" && len(w.disks) == 0
	},
	"wrong phase and late watch: plugin deletes data of a live claim": func(w *world) bool {
		w.programs[0].blind = []string{"persistentvolumeclaims"}
		w.createClaim("c", "")
		w.disks["/disk"] = true
		w.post("/api/v1/persistentvolumes",
			`{"metadata":{"name":"pv"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},
			"persistentVolumeReclaimPolicy":"Delete","hostPath":{"path":"/disk"},"claimRef":{"namespace":"shop","name":"c","uid":"`+w.at(mainClaim, "metadata/uid")+`"}}}`)
		w.send("PATCH", mainVolume+"/status", "application/merge-patch+json", `{"status":{"phase":"Released"}}`)
		w.settle()
		return w.read(mainClaim) != nil && len(w.disks) == 0
	},
	"crash forgets a CreateVolume that timed out": func(w *world) bool {
		w.fails = func(call process.Call) *process.Answer {
			if call.Create == "" {
				return nil
			}
			w.effect(call)
			return &process.Answer{Lost: true}
		}
		w.createClaim("c", "delete")
		w.work()
		w.delete(mainClaim)
		w.work()
		w.fails = nil
		w.start(sidecar, gateOn)
		w.settle()
		return w.orphaned()
	},
	"policy becomes Retain, retried deletion deletes the data": func(w *world) bool {
		w.boundClaim("delete")
		w.fails = func(call process.Call) *process.Answer {
			if call.Delete == "" {
				return nil
			}
			w.fails = nil
			return &process.Answer{Code: codes.Internal}
		}
		w.delete(mainClaim)
		w.work()
		w.programs[sidecar].blind = []string{"persistentvolumes"}
		w.patch(dynamic, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
		w.settle()
		return len(w.disks) == 0
	},
	"volume created again for a deleted claim": func(w *world) bool {
		w.programs[0].blind = []string{"persistentvolumes"}
		w.createClaim("c", "delete")
		w.work()
		w.programs[0].blind, w.programs[sidecar].blind = nil, []string{"persistentvolumeclaims"}
		w.settle()
		w.delete(mainClaim)
		w.work()
		w.runKeys(w.programs[sidecar], true)
		return w.read(mainClaim) == nil && len(w.deleted) > 0 && len(w.created) > 1
	},
	"name of the volume is taken": func(w *world) bool {
		w.programs[sidecar].blind = []string{"persistentvolumes"}
		w.createVolume("pv", "Retain")
		body, _ := json.Marshal(w.read(mainVolume))
		taken := strings.ReplaceAll(string(body), `"name":"pv"`, `"name":"`+dynamicName+`"`)
		w.post("/api/v1/persistentvolumes", strings.ReplaceAll(taken, `"resourceVersion":"1",`, ""))
		w.createClaim("c", "delete")
		w.settle()
		return len(w.created) > 0 && w.orphaned() && w.at(dynamic, "spec/csi/volumeHandle") == "disk-pv"
	},
	"lost write of the finalizer repeats DeleteVolume": func(w *world) bool {
		w.boundClaim("delete")
		w.lose(isMethod("PATCH", dynamic), false, nil)
		w.delete(mainClaim)
		w.settle()
		return w.read(dynamic) == nil && len(w.deleted) > 1
	},
	"two volumes of one disk": func(w *world) bool {
		w.createVolume("pv", "Delete")
		w.settle()
		w.boundClaim("")
		w.createVolumeOf("second", "Retain", "disk-pv")
		w.settle()
		w.createClaim("d", "")
		w.settle()
		w.delete(mainClaim)
		w.settle()
		return w.at(claims+"d", "spec/volumeName") == "second" && len(w.disks) == 0
	},
	"rollback strips the finalizer of a released volume": func(w *world) bool {
		w.boundClaim("delete")
		w.delete(dynamic)
		w.fails = func(call process.Call) *process.Answer {
			if call.Delete != "" {
				return &process.Answer{Code: codes.Internal}
			}
			return nil
		}
		w.delete(mainClaim)
		w.settle()
		w.fails = nil
		w.start(sidecar, gateOff)
		w.settle()
		return w.read(dynamic) == nil && w.orphaned()
	},
}

// keptRows are rows that upstream keeps, if only in its memory.
var keptRows = map[string]func(w *world) bool{
	"attached volume is deleted only once it is detached": func(w *world) bool {
		w.boundClaim("delete")
		const attachments = "/apis/storage.k8s.io/v1/volumeattachments"
		w.post(
			attachments,
			`{"metadata":{"name":"a"},"spec":{"attacher":"`+process.DriverName+
				`","nodeName":"n","source":{"persistentVolumeName":"`+dynamicName+`"}}}`,
		)
		w.delete(mainClaim)
		w.settle()
		kept := len(w.disks) == 1
		w.delete(attachments + "/a")
		w.settle()
		return kept && len(w.disks) == 0
	},
	"claim with an unknown outcome is served from memory": func(w *world) bool {
		w.lose(func(call process.Call) bool { return call.Create != "" }, true, nil)
		w.createClaim("c", "delete")
		w.work()
		w.delete(mainClaim)
		w.settle()
		return len(w.created) == 2 && len(w.disks) == 0 && w.read(dynamic) == nil
	},
	"volume that was not saved is saved later": func(w *world) bool {
		w.lose(isMethod("POST", "/api/v1/persistentvolumes"), false, nil)
		w.createClaim("c", "delete")
		w.work()
		w.delete(mainClaim)
		w.settle()
		return len(w.created) == 1 && len(w.disks) == 0
	},
}
