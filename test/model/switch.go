package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// honors reports whether the gate HonorPVReclaimPolicy of the program is on.
func (w *world) honors(s *State, i int) bool {
	return w.config.Programs[i].Honor != s.instances[i].switched
}

// switches returns the stop of a program that starts with the other gate; stopped is the state in
// which the program does not run.
func (w *world) switches(s, stopped *State, i int) []Step {
	if s.switches == 0 {
		return nil
	}
	after := stopped.clone()
	after.switches--
	after.instances[i].switched = !after.instances[i].switched
	gate := "off"
	if w.honors(after, i) {
		gate = "on"
	}
	w.giveUpDeleted(s, after)
	return []Step{{After: after, Says: w.config.Programs[i].Name + " stops, and has its gate switched " + gate}}
}

// giveUpDeleted gives up the disks of volumes that are deleted while a switched gate is off, or
// before the provisioner has added its finalizer again: they leak, as they did before KEP-2644.
// What users do makes after of before.
func (w *world) giveUpDeleted(before, after *State) {
	if int(after.switches) == w.config.Switches {
		return
	}
	off := false
	for i := range after.instances {
		off = off || after.instances[i].switched && !w.honors(after, i)
	}
	left := w.snapshot(after).Volumes
	for _, volume := range w.snapshot(before).Volumes {
		exists := slices.ContainsFunc(left, func(v *v1.PersistentVolume) bool { return v.UID == volume.UID && v.DeletionTimestamp == nil })
		if exists || volume.Spec.CSI == nil || !off && finalizer.Has(volume.Finalizers, finalizer.External) {
			continue
		}
		if id := w.diskWith(after, volume.Spec.CSI.VolumeHandle); id != 0 {
			after.givenUp = union(after.givenUp, id)
		}
	}
}
