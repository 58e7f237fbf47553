package plan

import "time"

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
		cascade("garbage-10000", Background, 10_000, short), cascade("garbage-foreground-10000", Foreground, 10_000, short), tree, defaults,
		{Name: "garbage-release", Topic: Releases, Kind: Release, Policy: Foreground, Size: 100, Kinds: few},
		{Name: "garbage-release-500-kinds", Topic: Releases, Kind: Release, Policy: Foreground, Size: 100, Kinds: many},
	}
	for _, s := range []Scenario{cascade("garbage-100000", Background, 100_000, long), cascade("garbage-foreground-100000", Foreground, 100_000, long)} {
		s.Full = true
		scenarios = append(scenarios, s)
	}
	return scenarios
}
