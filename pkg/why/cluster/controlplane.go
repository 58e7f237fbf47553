package cluster

import "slices"

// The leader Leases of the loops of both kinds, and of garbage-collector.
const (
	ControlPlane       = "kube-system" // their namespace
	PVControllerLease  = "pv-controller"
	UpstreamLoopsLease = "kube-controller-manager"
	collectorLease     = "garbage-collector"
)

// IsControlPlaneLease reports whether the leader Lease of the name belongs to a program of the
// control plane, and not to a provisioner.
func IsControlPlaneLease(name string) bool {
	return slices.Contains([]string{PVControllerLease, UpstreamLoopsLease, collectorLease}, name)
}
