package reclaim

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// The gate HonorPVReclaimPolicy is off in one of the two programs.
var (
	provisionerOff = harness.Setup{ProvisionerGateOff: true}
	controllerOff  = harness.Setup{ControllerFlags: "--feature-gates=HonorPVReclaimPolicy=false"}
)

// Of the volumes deleted before their claim, each program reclaims its own if its gate is
// on and leaks them, as upstream does, if it is off. No object stays.
func TestNoVolumeIsStuckWithOneGateOff(t *testing.T) {
	harness.Parallel(t, provisionerOff, controllerOff)
	for name, tc := range map[string]struct {
		how         harness.Setup
		csi, inTree bool
	}{
		"pv-controller on, provisioner off": {provisionerOff, false, true},
		"pv-controller off, provisioner on": {controllerOff, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, tc.how)
			s.CreateClaim("dynamic", harness.DeleteClass)
			dir := s.Directory()
			path := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath(dir), harness.ProvisionedBy(intree.HostPathName))
			s.CreateClaim("in-tree", s.Namespace)
			volume := s.AwaitBound("dynamic")
			s.AwaitBound("in-tree")
			for _, name := range []string{volume.Name, path.Name} {
				s.DeleteVolume(name)
				s.AwaitVolume(name, "is Terminating", func(v *v1.PersistentVolume) bool { return v.DeletionTimestamp != nil })
			}
			s.DeleteClaim("dynamic")
			s.DeleteClaim("in-tree")
			s.AwaitVolumeGone(volume.Name)
			s.AwaitVolumeGone(path.Name)
			if s.IsStored(harness.Handle(volume)) == tc.csi {
				t.Errorf("the storage system has the CSI volume: %v, want %v", tc.csi, !tc.csi)
			}
			s.ExpectData(dir, !tc.inTree)
		})
	}
}

// In every case the gate of the provisioner decides on the data of a CSI volume, the gate
// of the pv-controller does not matter, and no object stays.
func TestProvisionerGateDecidesForCSIVolumes(t *testing.T) {
	harness.Parallel(t, provisionerOff, controllerOff)
	for name, how := range map[string]harness.Setup{
		"pv-controller on, provisioner off": provisionerOff,
		"pv-controller off, provisioner on": controllerOff,
	} {
		for _, j := range reclaimCases {
			t.Run(fmt.Sprintf("%s/%s", name, j), func(t *testing.T) {
				checkReclaimCase(harness.Join(t, how), j, !how.ProvisionerGateOff)
			})
		}
	}
}
