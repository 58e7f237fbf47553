package model

import (
	"encoding/json"
	"slices"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

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
	return slices.Contains([]string{"Bound", "Released", "Failed"}, v.Status.Phase) && v.Spec.PersistentVolumeReclaimPolicy == "Delete"
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
	case old.Metadata.DeletionTimestamp != "", old.isReclaimed(), !changed.isReclaimed(), changed.Spec.CSI.Driver != process.DriverName,
		provisioner != "" && provisioner != process.DriverName, slices.Contains(changed.Metadata.Finalizers, string(finalizer.External)):
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
