package storage

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// terminatingWithoutFinalizer returns a bound static volume with policy Delete that was
// deleted before the provisioner could add its finalizer.
func terminatingWithoutFinalizer(s *harness.Session) *v1.PersistentVolume {
	s.T.Helper()
	s.CreateVolume(s.CreateStoredVolume("late"), v1.PersistentVolumeReclaimRetain)
	s.CreateClaim("claim", s.Namespace)
	volume := s.AwaitBound("claim")
	s.DeleteVolume(volume.Name)
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	return volume
}

func isPending(v *v1.PersistentVolume) bool { return reclaim.StatusOf(v) == reclaim.StatusPending }

func TestTerminatingVolumeWithoutFinalizerIsStillReclaimed(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := terminatingWithoutFinalizer(s)
	annotated := s.AwaitVolume(volume.Name, "has the annotation", isPending)
	if finalizer.Has(annotated.Finalizers, finalizer.External) {
		t.Fatalf("the volume already has the finalizer: %v", annotated.Finalizers)
	}
	s.AwaitEvent(volume, string(external.TooLateToProtect))
	expectKept(s, volume) // because its claim exists
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	s.ExpectReclaimed(volume)
}

func TestPolicyRetainEndsWaitForDeletion(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := terminatingWithoutFinalizer(s)
	s.AwaitVolume(volume.Name, "has the annotation", isPending)
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	expectKept(s, volume)
}

func TestTerminatingVolumeWithoutFinalizerIsNeverStuck(t *testing.T) {
	setups := map[string]harness.Setup{
		"upstream's sidecar does not annotate the volume": {UpstreamSidecar: true},
		"upstream's loops do not know the annotation":     {UpstreamLoops: true},
		"the provisioner's gate is off":                   provisionerOff,
		"the pv-controller's gate is off":                 controllerOff,
	}
	harness.Parallel(t, slices.Collect(maps.Values(setups))...)
	for name, how := range setups {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, how)
			volume := terminatingWithoutFinalizer(s)
			withoutGate := how.UpstreamLoops || how.ControllerFlags != ""
			if withoutGate {
				s.AwaitVolume(volume.Name, "has the annotation", isPending)
			}
			s.DeleteClaim("claim")
			s.AwaitVolumeGone(volume.Name)
			if withoutGate && s.IsStored(harness.Handle(volume)) {
				s.AwaitEvent(volume, string(external.TooLateToProtect))
			}
		})
	}
}

func TestProvisionerWithGateOffRemovesPendingAnnotation(t *testing.T) {
	s := harness.Join(t, provisionerOff)
	s.CreateVolume(s.CreateStoredVolume("late"), v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) {
		v.Annotations = map[string]string{reclaim.Annotation: reclaim.AnnotationPending}
	})
	s.CreateClaim("claim", s.Namespace)
	volume := s.AwaitBound("claim")
	s.AwaitVolume(volume.Name, "has no annotation",
		func(v *v1.PersistentVolume) bool { return reclaim.StatusOf(v) == reclaim.StatusNone })
	s.DeleteVolume(volume.Name)
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
}

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
			path := s.CreateVolume("path", v1.PersistentVolumeReclaimDelete, harness.HostPath(dir),
				harness.ProvisionedBy(intree.HostPathName))
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
