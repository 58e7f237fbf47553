package model

import (
	"encoding/json"
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// late returns the answer to the call of a former leader, which may have waited for so long that the disk of
// the call was deleted. Neither CSI nor the API server has fencing: what no program can know then is
// given up ("Known and accepted" in docs/architecture/provisioning.md).
func (w *world) late(s *State, right reply, call process.Call) reply {
	if right.state == s {
		return right
	}
	if call.Create != "" {
		if w.isDeleted(s, call.Create) && !w.hasEntry(s, call.Create) {
			right.state = w.givingUp(right.state, right.answer.Handle)
		}
		return right
	}
	volume := v1.PersistentVolume{}
	if call.Request.Method != http.MethodPost || call.Request.Path != volumesPath || json.Unmarshal([]byte(call.Request.Body), &volume) != nil {
		return right
	}
	if handle := check.HandleOf(&volume); w.diskWith(s, handle) == 0 && w.isDeleted(s, volume.Name) {
		right.state = w.givingUpAll(right.state, volume.Name)
	}
	return right
}

// isDeleted reports whether a disk of the name was created and deleted.
func (w *world) isDeleted(s *State, name string) bool {
	return slices.ContainsFunc(s.deleted, func(id diskID) bool { return w.disks[id].name == name })
}

// hasEntry reports whether a journal entry names the volume.
func (w *world) hasEntry(s *State, name string) bool {
	return slices.ContainsFunc(w.snapshot(s).Entries, func(e journal.Entry) bool { return e.VolumeName() == name })
}

// givingUpAll returns the state in which the disks of the name are given up: the claim is bound to one that
// was deleted, and another one may exist or be created at this moment.
func (w *world) givingUpAll(s *State, name string) *State {
	after := w.givingUpDisk(s, disk{name: name, handle: w.newHandle(s, name)})
	for _, id := range slices.Concat(s.disks, s.deleted) {
		if w.disks[id].name == name {
			after.givenUp = union(after.givenUp, id)
		}
	}
	return after
}
