package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// cluster returns the API server of the state.
func (w *world) cluster(s *State) server.Cluster {
	objects := make([]server.Object, 0, len(s.objects))
	for _, id := range s.objects {
		if id != 0 {
			objects = append(objects, w.objects[id])
		}
	}
	return server.NewCluster(objects...)
}

// serve lets the API server answer a request.
func (w *world) serve(s *State, request server.Request) (*State, outcome, error) {
	memo := string(binary.AppendUvarint(appendIDs(nil, s.objects), uint64(w.numberOf(request))))
	result, known := w.served[memo]
	if !known {
		var err error
		if result, err = w.handle(s, request); err != nil {
			return nil, outcome{}, err
		}
		result.response.Body = w.one(result.response.Body)
		w.served[memo] = result
	}
	if result.slot < 0 {
		return s, result, nil
	}
	after := w.put(s, result.slot, result.now)
	if w.objects[result.now].JSON == "" && w.slots[result.slot].Resource == "persistentvolumes" {
		w.volumeGone(s, after, s.objects[result.slot])
	}
	return after, result, nil
}

// askedFor is a request in a world with or without the admission policy.
type askedFor struct {
	server.Request
	admission bool
}

// outcome is what a request did.
type outcome struct {
	slot     slotID
	now      objectID
	response server.Response
	// plain is the version without what the admission policy added.
	plain objectID
}

// numberOf returns the number of a request.
func (w *world) numberOf(request server.Request) int32 {
	asked := askedFor{request, w.config.Admission}
	number, known := w.requests[asked]
	if !known {
		number = int32(len(w.requests))
		w.requests[asked], w.requestOf = number, append(w.requestOf, asked)
	}
	return number
}

// handle returns what a request does.
func (w *world) handle(s *State, request server.Request) (outcome, error) {
	before := w.cluster(s)
	after, response := before.Serve(request)
	result, changed := outcome{slot: -1, response: response}, changes(before.Objects(), after.Objects())
	if len(changed) > 1 {
		return outcome{}, fmt.Errorf("the request %s %s changed %d objects", request.Method, request.Path, len(changed))
	}
	if len(changed) == 0 {
		return result, nil
	}
	now := changed[0]
	if old, _ := before.Get(now.Key); w.config.Admission {
		if admitted := admit(old, now); admitted != now {
			result.plain = w.intern(now)
			now, result.response.Body = admitted, admitted.Wire()
		}
	}
	result.slot, result.now = w.slot(now.Key), w.intern(now)
	return result, nil
}

// changes returns the objects that are new or differ.
func changes(before, after []server.Object) []server.Object {
	return slices.DeleteFunc(
		slices.Clone(after), func(object server.Object) bool { return slices.Contains(before, object) },
	)
}

// admittedVolume is what the admission policy of deploy/admission reads of a volume.
type admittedVolume struct {
	Metadata struct {
		Annotations       map[string]string
		Finalizers        []string
		DeletionTimestamp string
	}
	Spec struct {
		PersistentVolumeReclaimPolicy string
		CSI                           struct{ Driver string }
	}
	Status struct{ Phase string }
}

// isReclaimed reports whether the volume is used, or was, with the policy Delete.
func (v admittedVolume) isReclaimed() bool {
	return slices.Contains([]string{"Bound", "Released", "Failed"}, v.Status.Phase) &&
		v.Spec.PersistentVolumeReclaimPolicy == "Delete"
}

// admit adds the finalizer to a volume in the write after which its data may be deleted, as the
// admission policy does for the driver.
func admit(before, now server.Object) server.Object {
	if now.Resource != "persistentvolumes" || before.JSON == "" || now.JSON == "" {
		return now
	}
	var old, changed admittedVolume
	if json.Unmarshal([]byte(before.JSON), &old) != nil || json.Unmarshal([]byte(now.JSON), &changed) != nil {
		return now
	}
	provisioner := changed.Metadata.Annotations[storage.AnnDynamicallyProvisioned]
	switch {
	case old.Metadata.DeletionTimestamp != "", old.isReclaimed(), !changed.isReclaimed(),
		changed.Spec.CSI.Driver != process.DriverName,
		provisioner != "" && provisioner != process.DriverName,
		slices.Contains(changed.Metadata.Finalizers, string(finalizer.External)):
		return now
	}
	var volume map[string]any
	if json.Unmarshal([]byte(now.JSON), &volume) != nil {
		return now
	}
	metadata, isMap := volume["metadata"].(map[string]any)
	if !isMap {
		return now
	}
	metadata["finalizers"] = append(slices.Clone(changed.Metadata.Finalizers), string(finalizer.External))
	text, err := json.Marshal(volume)
	if err != nil {
		return now
	}
	now.JSON = string(text)
	return now
}
