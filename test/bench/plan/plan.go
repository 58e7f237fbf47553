package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Side is whose programs run.
type Side string

// The sides.
const (
	// Ours: pv-controller and provisioner.
	Ours Side = "ours"
	// Upstream: three loops of kube-controller-manager and csi-provisioner.
	Upstream Side = "upstream"
	// Ceiling: the fewest requests that could do it, sent by the load generator beside idle watchers.
	Ceiling Side = "ceiling"
)

// AllSides are the sides of a scenario that names none.
var AllSides = []Side{Ours, Upstream, Ceiling}

// Kind is what happens in a scenario.
type Kind string

// The kinds.
const (
	// Storm: all claims are created at once and bound to new volumes, then all are deleted.
	Storm Kind = "storm"
	// Static: claims are bound to volumes that name them.
	Static Kind = "static"
	// Single: one claim after the other is bound and deleted.
	Single Kind = "single"
	// Rest: nothing happens.
	Rest Kind = "rest"
	// Start: the programs start in a full cluster, until they bind a claim.
	Start Kind = "start"
	// Selectors: claims of different sizes and with selectors choose among many volumes.
	Selectors Kind = "selectors"
	// Gate: programs start with the gate on after they have bound volumes with the gate off.
	Gate Kind = "gate"
	// Failing: claims are bound before and while the deletions of other volumes fail.
	Failing Kind = "failing"
	// Pods: claims are deleted in a namespace of many pods.
	Pods Kind = "pods"
	// Drivers: a storm beside the provisioners of other drivers.
	Drivers Kind = "drivers"
	// Memory: a small storm in a full cluster, for the memory of the programs.
	Memory Kind = "memory"
	// HandOver: the leader of two replicas is stopped, and then killed.
	HandOver Kind = "hand-over"
	// Cascade: an owner is deleted, and its dependents follow.
	Cascade Kind = "cascade"
	// Release: one owner after the other, each with one dependent, is deleted in the foreground.
	Release Kind = "release"
)

// Policy is the propagation policy of a deletion.
type Policy string

// The policies.
const (
	// Background: the owner is gone at once.
	Background Policy = "background"
	// Foreground: the owner stays until its dependents are gone.
	Foreground Policy = "foreground"
)

// Order is the order in which users delete volumes and claims.
type Order string

// The orders.
const (
	// VolumeFirst: every volume is deleted, then every claim.
	VolumeFirst Order = "volume first"
	// ClaimFirst: every claim is deleted, and the volumes follow by their policy.
	ClaimFirst Order = "claim first"
)

// Scenario is what is measured.
type Scenario struct {
	// Name identifies the scenario, Topic the table in which it stands.
	Name, Topic string
	Kind        Kind
	// Size is the number of volumes or dependents that are handled. In the kind Release it is
	// the number of owners.
	Size  int
	Order Order
	// Policy is that of the deletion of an owner.
	Policy Policy
	// Inner is the number of dependents that own the other dependents; 0 means that one owner
	// has all.
	Inner int
	// Kinds is the number of kinds that the API server serves, 0 for its own.
	Kinds int
	// Rest is the time between the start of the programs and the measurement of their memory.
	Rest time.Duration
	// Others is the number of what the scenario needs beside: free volumes, pods, drivers,
	// failing deletions.
	Others int
	// Background is the number of bound pairs of volume and claim that exist in the cluster.
	Background int
	// DriverLatency is the duration of each CreateVolume and DeleteVolume.
	DriverLatency time.Duration
	// NetworkDelay is the time that a packet takes between the programs and the API server.
	NetworkDelay time.Duration
	// Defaults runs the programs with the client limits of their defaults, instead of none.
	Defaults bool
	// Sides take turns; none means all.
	Sides []Side
	// Full scenarios take long: they are left out unless asked for.
	Full bool
}

// Garbage reports whether the scenario measures garbage collectors.
func (s Scenario) Garbage() bool { return s.Kind == Cascade || s.Kind == Release }

// Unit names what is handled.
func (s Scenario) Unit() string {
	switch s.Kind {
	case Cascade:
		return "dependent"
	case Release:
		return "owner"
	default:
		return "volume"
	}
}

// Turn is one scenario with the programs of one side.
type Turn struct {
	Scenario Scenario
	Side     Side
	// Round counts from 1.
	Round int
}

// Turns returns the turns of a scenario. Each round begins with another side, so that none
// always meets the smaller etcd or the warmer server.
func (s Scenario) Turns(rounds int) []Turn {
	sides := s.Sides
	if len(sides) == 0 {
		sides = AllSides
	}
	var turns []Turn
	for round := range rounds {
		for i := range sides {
			turns = append(turns, Turn{Scenario: s, Side: sides[(round+i)%len(sides)], Round: round + 1})
		}
	}
	return turns
}

// Choice selects scenarios.
type Choice struct {
	// Full includes the scenarios that take long.
	Full bool
	// Only is a regular expression for names; empty selects all.
	Only string
	// Limit bounds sizes for a trial; 0 does not.
	Limit int
}

// Choose returns the selected scenarios: those of garbage collectors last, by the number of
// kinds; the others by background, so that a cluster is filled once.
func Choose(scenarios []Scenario, choice Choice) ([]Scenario, error) {
	only, err := regexp.Compile(choice.Only)
	if err != nil {
		return nil, fmt.Errorf("choose scenarios: %w", err)
	}
	var chosen []Scenario
	for _, s := range scenarios {
		if s.Full && !choice.Full || !only.MatchString(s.Name) {
			continue
		}
		if choice.Limit > 0 {
			s = s.limited(choice.Limit)
		}
		chosen = append(chosen, s)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("choose scenarios: none is called %q", choice.Only)
	}
	slices.SortStableFunc(chosen, func(a, b Scenario) int {
		return cmp.Or(cmp.Compare(a.Kinds, b.Kinds), cmp.Compare(a.Background, b.Background))
	})
	return chosen, nil
}

// Clusters divides chosen scenarios into those that are measured in the same cluster: a
// cluster has one number of kinds.
func Clusters(chosen []Scenario) [][]Scenario {
	var clusters [][]Scenario
	for i, s := range chosen {
		if i == 0 || s.Kinds != chosen[i-1].Kinds {
			clusters = append(clusters, nil)
		}
		last := &clusters[len(clusters)-1]
		*last = append(*last, s)
	}
	return clusters
}

// limited returns the scenario with at most that many volumes and pairs, and with as many
// others in proportion.
func (s Scenario) limited(limit int) Scenario {
	if s.Size > limit {
		s.Others = s.Others * limit / s.Size
		s.Inner = s.Inner * limit / s.Size
	}
	s.Size, s.Background = min(s.Size, limit), min(s.Background, limit)
	return s
}
