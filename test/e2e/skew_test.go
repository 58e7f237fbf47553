package e2e

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

// gateOff is the flag that turns the gate off for one program.
const gateOff = "--feature-gates=HonorPVReclaimPolicy=false"

// Each row is a pair of gates from rows.md, "Version skew": a volume that is deleted
// before its claim is reclaimed by the program whose gate is on, and leaks as today
// where it is off; no object is stuck.
func TestWithTheGateOffInOneProgramNoVolumeIsStuck(t *testing.T) {
	for name, tc := range map[string]struct {
		how         setup
		csi, inTree bool
	}{
		"pv-controller on, provisioner off": {setup{honor: true, provisionerOff: true}, false, true},
		"pv-controller off, provisioner on": {setup{honor: true, controller: gateOff}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enter(t, shared(t, tc.how))
			s.createClaim("dynamic", deleteClass)
			dir := s.directory()
			path := s.createVolume("path", v1.PersistentVolumeReclaimDelete, hostPath(dir), provisionedBy(intree.HostPathName))
			s.createClaim("in-tree", s.namespace)
			volume := s.awaitBound("dynamic")
			s.awaitBound("in-tree")
			for _, name := range []string{volume.Name, path.Name} {
				s.deleteVolume(name)
				s.awaitVolume(name, "is Terminating", func(v *v1.PersistentVolume) bool { return v.DeletionTimestamp != nil })
			}
			s.deleteClaim("dynamic")
			s.deleteClaim("in-tree")
			s.awaitVolumeGone(volume.Name)
			s.awaitVolumeGone(path.Name)
			if s.stored(handle(volume)) == tc.csi {
				t.Errorf("the CSI volume is still stored: %v, want %v", tc.csi, !tc.csi)
			}
			s.expectData(dir, !tc.inTree)
		})
	}
}

// Every journey of a CSI volume ends with no object left, for which travel waits, and
// with its data as the provisioner's gate says, whatever that of the pv-controller.
func TestWithTheGateOffInOneProgramCSIVolumesAreTheProvisionersAffair(t *testing.T) {
	for name, how := range map[string]setup{
		"pv-controller on, provisioner off": {honor: true, provisionerOff: true},
		"pv-controller off, provisioner on": {honor: true, controller: gateOff},
	} {
		for _, j := range journeys {
			t.Run(fmt.Sprintf("%s/%s", name, j), func(t *testing.T) {
				t.Parallel()
				travel(enter(t, shared(t, how)), j, !how.provisionerOff)
			})
		}
	}
}
