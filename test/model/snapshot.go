package model

import (
	"encoding/json"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// snapshot returns the state as the rules see it.
func (w *world) snapshot(s *State) *check.Snapshot {
	snapshot := &check.Snapshot{}
	for _, id := range s.objects {
		if id == 0 || w.objects[id].JSON == "" {
			continue
		}
		switch w.objects[id].Resource {
		case "persistentvolumes":
			snapshot.Volumes = append(snapshot.Volumes, cached(
				&w.facts.volumes, id, func() *v1.PersistentVolume { return decodeAs[v1.PersistentVolume](w.Lab, id) },
			))
		case "persistentvolumeclaims":
			snapshot.Claims = append(snapshot.Claims, cached(
				&w.facts.claims, id, func() *v1.PersistentVolumeClaim { return decodeAs[v1.PersistentVolumeClaim](w.Lab, id) },
			))
		case "pods":
			snapshot.Pods = append(snapshot.Pods, cached(
				&w.facts.pods, id, func() *v1.Pod { return decodeAs[v1.Pod](w.Lab, id) },
			))
		case "volumeattachments":
			snapshot.Attached = append(snapshot.Attached, cached(&w.facts.attached, id, func() string {
				return ptr.Deref(decodeAs[storagev1.VolumeAttachment](w.Lab, id).Spec.Source.PersistentVolumeName, "")
			}))
		case "leases":
			snapshot.Entries = append(snapshot.Entries, cached(&w.facts.entries, id, func() []journal.Entry {
				entries, _ := journal.Entries(decodeAs[coordinationv1.Lease](w.Lab, id))
				return entries
			})...)
		}
	}
	for _, id := range s.disks {
		snapshot.Disks = append(snapshot.Disks, check.Disk{Handle: w.disks[id].handle, Name: w.disks[id].name})
	}
	snapshot.Deleted, snapshot.Kept, snapshot.GivenUp = w.handles(s.deleted), w.handles(s.kept), w.handles(s.givenUp)
	snapshot.Filled = w.handles(s.filled)
	for i, program := range s.instances {
		// No program knows what a former leader has in flight.
		snapshot.Calls = append(snapshot.Calls, openCalls(w.machines[i].Local(program.local))...)
	}
	return snapshot
}

// factCache has the decoded objects by their number.
type factCache struct {
	volumes map[objectID]*v1.PersistentVolume
	claims  map[objectID]*v1.PersistentVolumeClaim
	pods    map[objectID]*v1.Pod
	entries map[objectID][]journal.Entry
	// attached are the names of attached volumes.
	attached map[objectID]string
}

// cached returns the value of an object, decoded once.
func cached[T any](m *map[objectID]T, id objectID, decode func() T) T {
	if *m == nil {
		*m = map[objectID]T{}
	}
	value, known := (*m)[id]
	if !known {
		value = decode()
		(*m)[id] = value
	}
	return value
}

func decodeAs[T any](l *Lab, id objectID) *T {
	object := new(T)
	if err := json.Unmarshal([]byte(l.objects[id].Wire()), object); err != nil {
		panic("an object of the model cannot be decoded: " + err.Error())
	}
	return object
}

// openCalls returns the calls to the storage system that wait for an answer.
func openCalls(local *process.Local) []check.Call {
	var calls []check.Call
	for _, call := range local.Calls {
		switch {
		case call.Create != "":
			calls = append(calls, check.Call{Kind: check.CreateVolume, Name: call.Create, Awaited: true})
		case call.Delete != "":
			calls = append(calls, check.Call{Kind: check.DeleteVolume, Handle: call.Delete, Awaited: true})
		}
	}
	return calls
}
