package cluster

import (
	"slices"

	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// The leader Leases of the loops of both kinds, of garbage-collector and of node-terminator.
const (
	ControlPlane       = "kube-system" // their namespace
	PVControllerLease  = "pv-controller"
	UpstreamLoopsLease = "kube-controller-manager"
	collectorLease     = "garbage-collector"
	// NodeTerminatorLease is that of node-terminator, by default.
	NodeTerminatorLease = "node-terminator"
)

// StandbyHolder holds the Lease of deploy/pv-controller/standby, and that of node-terminator once "exeunt rollback nodes"
// has taken it. It is no replica: all replicas wait until a user deletes that Lease, or it runs out.
const StandbyHolder = "standby"

// IsControlPlaneLease reports whether the leader Lease of the name belongs to a program of the control plane, or to
// the runner of a teardown in its own namespace, and not to a provisioner.
func IsControlPlaneLease(name string) bool {
	return slices.Contains([]string{PVControllerLease, UpstreamLoopsLease, collectorLease, NodeTerminatorLease,
		teardown.LeaseName}, name)
}
