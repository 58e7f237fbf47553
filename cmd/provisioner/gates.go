package main

import (
	"errors"

	"k8s.io/component-base/featuregate"
)

// The gates of upstream's sidecar.
const (
	// topologyGate off treats every driver as one without topology.
	topologyGate featuregate.Feature = "Topology"
	// attributesGate passes the parameters of a VolumeAttributesClass to the driver.
	attributesGate featuregate.Feature = "VolumeAttributesClass"
	// crossNamespaceGate makes volumes from snapshots of other namespaces.
	crossNamespaceGate featuregate.Feature = "CrossNamespaceVolumeDataSource"
	// journalGate writes a journal entry before each CreateVolume call.
	journalGate featuregate.Feature = "ProvisioningJournal"
	// releaseGate gives the lease back when the program ends.
	releaseGate featuregate.Feature = "ReleaseLeaderElectionOnExit"
)

// gates are those that this program has beside the common ones.
func gates() map[featuregate.Feature]featuregate.FeatureSpec {
	return map[featuregate.Feature]featuregate.FeatureSpec{
		topologyGate:       {Default: true, PreRelease: featuregate.GA},
		attributesGate:     {Default: true, PreRelease: featuregate.GA},
		crossNamespaceGate: {Default: false, PreRelease: featuregate.Alpha},
		journalGate:        {Default: true, PreRelease: featuregate.Beta},
		releaseGate:        {Default: true, PreRelease: featuregate.Beta},
	}
}

// checkGates refuses the values that are not served.
func (o *options) checkGates() error {
	switch on := o.Gates(); {
	case !on[string(attributesGate)]:
		return errors.New("--feature-gates=VolumeAttributesClass=false is refused: a claim that names a class would silently get a volume without its parameters; leave the gate on")
	case on[string(crossNamespaceGate)]:
		return errors.New("--feature-gates=CrossNamespaceVolumeDataSource=true is refused: volumes are made from snapshots of the claim's own namespace only; leave the gate off")
	case !on[string(releaseGate)]:
		return errors.New("--feature-gates=ReleaseLeaderElectionOnExit=false is refused: the lease is always given back on exit, after the last write, so that a standby need not wait for its end; leave the gate on")
	}
	return nil
}
