package model

import "github.com/exeunt-io/exeunt/pkg/finalizer"

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
	w.giveUpDeleted(after)
	return []Step{{After: after, Says: w.config.Programs[i].Name + " stops, and has its gate switched " + gate}}
}

// giveUpDeleted gives up the disks of volumes that are deleted while a switched gate is off, or
// before the provisioner has added its finalizer again: they leak, as they did before KEP-2644.
func (w *world) giveUpDeleted(s *State) {
	off := false
	for i := range s.instances {
		off = off || s.instances[i].switched && !w.honors(s, i)
	}
	for _, volume := range w.snapshot(s).Volumes {
		unprotected := int(s.switches) < w.config.Switches && !finalizer.Has(volume.Finalizers, finalizer.External)
		if volume.DeletionTimestamp == nil || volume.Spec.CSI == nil || !off && !unprotected {
			continue
		}
		if id := w.diskWith(s, volume.Spec.CSI.VolumeHandle); id != 0 {
			s.givenUp = union(s.givenUp, id)
		}
	}
}
