package plan

import (
	"slices"
	"time"
)

// The topics, in the order of the tables.
const (
	BySize    = "Storms by size"
	ByOrder   = "Storms by order of deletion"
	ByLatency = "Storms by latency of the driver"
	AtLimits  = "Storms at the default client limits"
	ByNetwork = "Storms by network delay"
	Binding   = "Binding to existing volumes"
	Large     = "In a large cluster"
	Others    = "Special situations"
	Cascades  = "Garbage collection"
	Releases  = "Release of owners"
)

// Topics returns the topics in the order of the tables.
func Topics() []string {
	return []string{BySize, ByOrder, ByLatency, AtLimits, ByNetwork, Binding, Large, Others, Cascades, Releases}
}

// programs are the sides of scenarios that have no ceiling.
var programs = []Side{Ours, Upstream}

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	return slices.Concat(storms(), networks(), existing(), large(), special(), garbage())
}

// networks are storms with a delay between the programs and the API server.
func networks() []Scenario {
	ms := time.Millisecond
	return []Scenario{
		{Name: "network-2ms", Topic: ByNetwork, Kind: Storm, Size: 400, Order: VolumeFirst, NetworkDelay: 2 * ms},
		{Name: "network-5ms", Topic: ByNetwork, Kind: Storm, Size: 300, Order: VolumeFirst, NetworkDelay: 5 * ms},
	}
}

// existing are scenarios in which claims get volumes that exist.
func existing() []Scenario {
	return []Scenario{
		{Name: "static-10000", Topic: Binding, Kind: Static, Size: 10_000, Full: true},
		{Name: "selectors", Topic: Binding, Kind: Selectors, Size: 2_000, Others: 10_000, Sides: programs, Full: true},
	}
}

// large are scenarios in clusters with many pairs of volume and claim.
func large() []Scenario {
	var scenarios []Scenario
	for _, cluster := range []struct {
		name          string
		pairs, single int
		full          bool
		sides         []Side // in a storm
	}{
		{"1000", 1_000, 30, false, nil}, {"10000", 10_000, 30, true, nil}, {"50000", 50_000, 30, true, nil},
		{"200000", 200_000, 10, true, []Side{Ours, Ceiling}},
		// upstream takes longer for a claim than a phase may last for all
	} {
		scenarios = append(scenarios,
			Scenario{Name: "start-" + cluster.name, Topic: Large, Kind: Start, Background: cluster.pairs, Sides: programs,
				Full: cluster.full},
			Scenario{Name: "single-" + cluster.name, Topic: Large, Kind: Single, Size: cluster.single, Order: VolumeFirst,
				Background: cluster.pairs, Full: cluster.full},
			Scenario{Name: "among-" + cluster.name, Topic: Large, Kind: Storm, Size: 500, Order: VolumeFirst,
				Background: cluster.pairs, Sides: cluster.sides, Full: true})
	}
	return append(scenarios,
		Scenario{Name: "rest-50000", Topic: Large, Kind: Rest, Background: 50_000, Full: true},
		Scenario{Name: "memory", Topic: Large, Kind: Memory, Size: 100, Order: VolumeFirst, Background: 50_000,
			Sides: programs})
}

// special are the other scenarios.
func special() []Scenario {
	return []Scenario{
		{Name: "gate-on", Topic: Others, Kind: Gate, Size: 10_000, Full: true},
		{Name: "hand-over", Topic: Others, Kind: HandOver, Sides: []Side{Ours}},
		{Name: "failing-deletions", Topic: Others, Kind: Failing, Size: 100, Others: 1_000, Order: VolumeFirst, Sides: programs, Full: true},
		{Name: "many-pods", Topic: Others, Kind: Pods, Size: 500, Others: 5_000, Order: ClaimFirst, Full: true},
		{Name: "twenty-drivers", Topic: Others, Kind: Drivers, Size: 500, Others: 19, Order: VolumeFirst, Full: true},
	}
}

// storms returns the storms without network delay.
func storms() []Scenario {
	ms := time.Millisecond
	return []Scenario{
		{Name: "storm-1000", Topic: BySize, Kind: Storm, Size: 1_000, Order: VolumeFirst},
		{Name: "storm-5000", Topic: BySize, Kind: Storm, Size: 5_000, Order: VolumeFirst},
		{Name: "storm-20000", Topic: BySize, Kind: Storm, Size: 20_000, Order: VolumeFirst, Full: true},
		{Name: "claim-first-1000", Topic: ByOrder, Kind: Storm, Size: 1_000, Order: ClaimFirst},
		{Name: "driver-200ms", Topic: ByLatency, Kind: Storm, Size: 1_000, Order: VolumeFirst, DriverLatency: 200 * ms},
		{Name: "driver-2s", Topic: ByLatency, Kind: Storm, Size: 1_000, Order: VolumeFirst, DriverLatency: 2_000 * ms},
		{Name: "defaults", Topic: AtLimits, Kind: Storm, Size: 300, Order: VolumeFirst, Defaults: true, Sides: programs},
	}
}

// few is the number of kinds of a small cluster, many that of one with many operators.
const few, many = 60, 500

// garbage returns the scenarios of garbage collectors. Dependents are ConfigMaps.
func garbage() []Scenario {
	const short, long = 15 * time.Second, 150 * time.Second
	cascade := func(name string, policy Policy, size int, rest time.Duration) Scenario {
		return Scenario{Name: name, Topic: Cascades, Kind: Cascade, Policy: policy, Size: size, Kinds: few, Rest: rest}
	}
	tree := cascade("garbage-tree", Foreground, 10_000, 0)
	tree.Inner = 100
	defaults := cascade("garbage-defaults", Background, 300, 0)
	defaults.Defaults, defaults.Sides = true, programs
	scenarios := []Scenario{
		cascade("garbage-10000", Background, 10_000, short), cascade("garbage-foreground-10000", Foreground, 10_000, short),
		tree, defaults,
		{Name: "garbage-release", Topic: Releases, Kind: Release, Policy: Foreground, Size: 100, Kinds: few},
		{Name: "garbage-release-500-kinds", Topic: Releases, Kind: Release, Policy: Foreground, Size: 100, Kinds: many},
	}
	for _, s := range []Scenario{cascade("garbage-100000", Background, 100_000, long),
		cascade("garbage-foreground-100000", Foreground, 100_000, long)} {
		s.Full = true
		scenarios = append(scenarios, s)
	}
	return scenarios
}
