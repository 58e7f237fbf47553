package main

import (
	"errors"

	"k8s.io/component-base/featuregate"
)

// Feature gates of csi-provisioner.
const (
	// topologyGate: if off, every driver counts as one without topology.
	topologyGate featuregate.Feature = "Topology"
	// attributesGate passes the parameters of a VolumeAttributesClass to the driver.
	attributesGate featuregate.Feature = "VolumeAttributesClass"
	// crossNamespaceGate creates volumes from snapshots in other namespaces.
	crossNamespaceGate featuregate.Feature = "CrossNamespaceVolumeDataSource"
	// journalGate writes a journal entry before each CreateVolume call.
	journalGate featuregate.Feature = "ProvisioningJournal"
	// releaseGate releases the leader lease when the program ends.
	releaseGate featuregate.Feature = "ReleaseLeaderElectionOnExit"
)

// gates returns the feature gates of this program, without the shared ones.
func gates() map[featuregate.Feature]featuregate.FeatureSpec {
	return map[featuregate.Feature]featuregate.FeatureSpec{
		topologyGate:       {Default: true, PreRelease: featuregate.GA},
		attributesGate:     {Default: true, PreRelease: featuregate.GA},
		crossNamespaceGate: {Default: false, PreRelease: featuregate.Alpha},
		journalGate:        {Default: true, PreRelease: featuregate.Beta},
		releaseGate:        {Default: true, PreRelease: featuregate.Beta},
	}
}

// checkGates refuses values that are not supported.
func (o *options) checkGates() error {
	switch on := o.Gates(); {
	case !on[string(attributesGate)]:
		return errors.New("--feature-gates=VolumeAttributesClass=false is refused: a claim with a VolumeAttributesClass would silently get a volume without its parameters; leave the gate on")
	case on[string(crossNamespaceGate)]:
		return errors.New("--feature-gates=CrossNamespaceVolumeDataSource=true is refused: volumes are restored only from snapshots in the claim's namespace; leave the gate off")
	case !on[string(releaseGate)]:
		return errors.New("--feature-gates=ReleaseLeaderElectionOnExit=false is refused: the lease is always released on exit, after the last write, so that a standby does not wait for its expiry; leave the gate on")
	}
	return nil
}
