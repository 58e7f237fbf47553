package main

import (
	"math/rand/v2"
	"time"
)

// Sort is where the volume of a lifecycle comes from.
type Sort string

// The sorts of volumes.
const (
	// Dynamic: created for a claim. Waiting: created once a node is selected.
	Dynamic Sort = "dynamic"
	Waiting Sort = "waiting"
	// Static: created by an administrator.
	Static Sort = "static"
	// Clone: copied from the volume of another claim, whose claim is deleted meanwhile.
	Clone Sort = "clone"
	// Spaced: in a namespace of its own that is deleted.
	Spaced Sort = "namespace"
	// Tree: no volume, but an owner and its dependents. No user draws it.
	Tree Sort = "tree"
)

// Order is the order in which claim and volume are deleted.
type Order string

// The orders of deletion.
const (
	ClaimFirst  Order = "claim first"
	VolumeFirst Order = "volume first"
	AtOnce      Order = "at once"
)

// Flip is a change of the reclaim policy by the user.
type Flip string

// The changes of policy.
const (
	NoFlip Flip = "none"
	// FlipBound changes the policy while the claim is bound, FlipReleased once it is gone,
	// FlipRacing together with the deletion, and back after it.
	FlipBound    Flip = "bound"
	FlipReleased Flip = "released"
	FlipRacing   Flip = "racing"
)

// Choices is what a user does with one volume.
type Choices struct {
	Sort Sort
	// Retain is the reclaim policy at first.
	Retain bool
	Order  Order
	Flip   Flip
	// Early deletes the claim before it is bound.
	Early bool
	// Pod uses the claim, and goes after the claim was deleted.
	Pod bool
	// Again creates a claim of the same name while the first one goes.
	Again bool
	// Denied: a webhook denies the first writes to the claim and to a static volume.
	Denied bool
	// Undone: while there are faults, the metadata of the claim and of a static volume is restored after each write.
	Undone bool
	// Pause comes before each step.
	Pause time.Duration
}

// NewChoices returns the choices of the n-th lifecycle of a user. They depend on nothing else.
func NewChoices(seed uint64, user, n int) Choices {
	random := rand.New(rand.NewPCG(seed, uint64(user+2)<<32|uint64(n)))
	pick := func(percent int) bool { return random.IntN(100) < percent }
	c := Choices{
		Sort:   []Sort{Dynamic, Dynamic, Dynamic, Dynamic, Waiting, Waiting, Static, Static, Clone, Spaced}[random.IntN(10)],
		Retain: pick(30),
		Order:  []Order{ClaimFirst, VolumeFirst, AtOnce}[random.IntN(3)],
		Flip:   []Flip{NoFlip, NoFlip, NoFlip, FlipBound, FlipReleased, FlipRacing}[random.IntN(6)],
		Early:  pick(12),
		Pod:    pick(30),
		Again:  pick(15),
		Pause:  time.Duration(random.Int64N(int64(400 * time.Millisecond))),
		Denied: pick(10),
		Undone: pick(8),
	}
	return c.possible()
}

// possible drops choices that do not go together.
func (c Choices) possible() Choices {
	if c.Early || c.Sort == Spaced {
		c.Retain, c.Flip, c.Again = false, NoFlip, false
	}
	if c.Sort == Clone || c.Sort == Static {
		c.Early, c.Again = false, false
	}
	if c.Sort == Clone && c.Order == AtOnce { // the claim of the source is deleted before a flip
		c.Flip = NoFlip
	}
	if c.Flip == FlipReleased { // a volume with policy Delete is gone by then
		c.Retain = true
	}
	if c.Flip == FlipReleased && c.Order != ClaimFirst {
		c.Order = ClaimFirst // otherwise its object is gone as well
	}
	if c.Flip == FlipRacing {
		c.Retain, c.Order = false, ClaimFirst
	}
	return c
}

// prefix begins the name of the claim.
func (c Choices) prefix() string {
	switch {
	case c.Denied:
		return denied
	case c.Undone:
		return undone
	}
	return ""
}

// Kept reports whether the disk outlives its PersistentVolume.
func (c Choices) Kept() bool {
	switch c.Flip {
	case FlipBound:
		return !c.Retain
	case FlipReleased, FlipRacing:
		return false
	case NoFlip:
	}
	return c.Retain
}
