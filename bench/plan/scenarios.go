package plan

import (
	"slices"
	"time"
)

// The topics, in the order of the page.
const (
	BySize    = "Storms by size"
	ByOrder   = "Storms by order of deletion"
	ByLatency = "Storms by latency of the driver"
	AtLimits  = "Storms at the default client limits"
	ByNetwork = "Storms by network delay"
	Binding   = "Binding to existing volumes"
	Large     = "In a large cluster"
	Others    = "Special situations"
)

// Topics returns the topics in the order of the page.
func Topics() []string {
	return []string{BySize, ByOrder, ByLatency, AtLimits, ByNetwork, Binding, Large, Others}
}

// programs are the sides of scenarios that have no ceiling.
var programs = []Side{Ours, Upstream}

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	ms := time.Millisecond
	return slices.Concat(storms(), []Scenario{
		{Name: "network-2ms", Topic: ByNetwork, Kind: Storm, Size: 400, Order: VolumeFirst, NetworkDelay: 2 * ms},
		{Name: "network-5ms", Topic: ByNetwork, Kind: Storm, Size: 300, Order: VolumeFirst, NetworkDelay: 5 * ms},
	})
}

// storms returns the storms without network delay.
func storms() []Scenario {
	ms := time.Millisecond
	return []Scenario{
		{Name: "storm-1000", Topic: BySize, Kind: Storm, Size: 1_000, Order: VolumeFirst},
		{Name: "storm-5000", Topic: BySize, Kind: Storm, Size: 5_000, Order: VolumeFirst},
		{Name: "storm-20000", Topic: BySize, Kind: Storm, Size: 20_000, Order: VolumeFirst, Full: true},
		{Name: "claim-first-1000", Topic: ByOrder, Kind: Storm, Size: 1_000, Order: ClaimFirst},
		{Name: "claim-first-5000", Topic: ByOrder, Kind: Storm, Size: 5_000, Order: ClaimFirst, Full: true},
		{Name: "driver-200ms", Topic: ByLatency, Kind: Storm, Size: 1_000, Order: VolumeFirst, DriverLatency: 200 * ms},
		{Name: "driver-2s", Topic: ByLatency, Kind: Storm, Size: 1_000, Order: VolumeFirst, DriverLatency: 2_000 * ms},
		{Name: "defaults", Topic: AtLimits, Kind: Storm, Size: 300, Order: VolumeFirst, Defaults: true, Sides: programs},
		{Name: "defaults-claim-first", Topic: AtLimits, Kind: Storm, Size: 300, Order: ClaimFirst, Defaults: true, Sides: programs, Full: true},
	}
}
