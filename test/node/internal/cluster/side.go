package cluster

import "fmt"

// Side selects the programs that bind, protect, create and delete volumes.
type Side string

// The sides.
const (
	// Ours are pv-controller and provisioner, installed by kustomizations.
	Ours Side = "ours"
	// Chart are the same programs, installed by the chart.
	Chart Side = "chart"
	// Upstream are all loops of kube-controller-manager, and csi-provisioner.
	Upstream Side = "upstream"
)

// check returns an error for an unknown side.
func (s Side) check() error {
	switch s {
	case Ours, Chart, Upstream:
		return nil
	}
	return fmt.Errorf("unknown side %q, want %s, %s or %s", s, Ours, Chart, Upstream)
}

// Other returns the side that takes over from it, and back: Upstream for ours, Ours for upstream's.
func (s Side) Other() Side {
	if s == Upstream {
		return Ours
	}
	return Upstream
}

// Provisioner returns the program that creates and deletes volumes, as its image names it.
func (s Side) Provisioner() string {
	if s == Upstream {
		return "/csi-provisioner"
	}
	return "/provisioner"
}
