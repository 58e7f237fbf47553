package inventory

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/fate"
)

// Options are what the caller knows beside the objects.
type Options struct {
	// Shared are the Handles of volumes of other clusters (#05).
	Shared map[string]bool
	// APIServer are the host names and IP addresses of the API server that we use (#33).
	APIServer map[string]bool
	// Last are the namespaces that a person wants to go last.
	Last []string
	// RequestWait is how long the answer to a requested claim is awaited (#21), 2 minutes by default.
	RequestWait time.Duration
}

// Participant is a finalizer of an operator on Alive.
type Participant struct {
	Finalizer string
	// Namespace is where the operator runs, "" if it is not known.
	Namespace string
	// Text says what it cleans up.
	Text string
	// Stuck: there is evidence that it will not finish (#55).
	Stuck bool
}

// Inventory is what is known of the objects.
type Inventory struct {
	options Options
}

// New returns an Inventory without objects.
func New(options Options) *Inventory { return &Inventory{options: options} }

// Set adds or replaces an object. Kinds that a teardown does not need are ignored.
func (i *Inventory) Set(object any) {}

// Remove removes an object.
func (i *Inventory) Remove(object any) {}

// SetParticipants replaces the participants: the foreign finalizers of Alive.
func (i *Inventory) SetParticipants(participants []Participant) {}

// SetStuck replaces the UIDs of objects (pods, claims, volumes, snapshots) with evidence that they will not go.
func (i *Inventory) SetStuck(stuck map[types.UID]bool) {}

// Restore adds items of the record whose fate is Unknown: claims that were deleted without an answer (#21).
func (i *Inventory) Restore(items []teardown.Item) {}

// Action is what a step does.
type Action int

const (
	// Mark sets the label and the policy Retain on a kept PersistentVolume, in one patch.
	Mark Action = iota
	// Delete deletes the object.
	Delete
)

// Step is one thing that may be done now.
type Step struct {
	Action   Action
	Resource schema.GroupVersionResource
	Kind     string
	// Namespace is "" for a PersistentVolume.
	Namespace       string
	Name            string
	UID             types.UID
	ResourceVersion string
	// Volume is the PersistentVolume of a claim. It is read live, and judged by Live, before the claim is deleted.
	Volume string
	Reason string
}

// Steps returns what may be done now: first the marks, then deletions in the order of the waves.
func (i *Inventory) Steps(now time.Time) []Step { return nil }

// Unmarked returns how many kept volumes have no mark yet.
func (i *Inventory) Unmarked(now time.Time) int { return 0 }

// Work returns what is left: Ready, Awaited or Quiet.
func (i *Inventory) Work(now time.Time) teardown.Work { return teardown.Unlisted }

// NextTime returns when a step is due by time alone, the zero time for never.
func (i *Inventory) NextTime(now time.Time) time.Time { return time.Time{} }

// Items returns the external resources and the participants.
func (i *Inventory) Items(now time.Time) []teardown.Item { return nil }

// Unopened returns the namespaces with claims whose wave has not begun, sorted: their pods may still be made (#25).
func (i *Inventory) Unopened(now time.Time) []string { return nil }

// Live judges a PersistentVolume that was read now, before its claim is deleted: only DeleteClaim lets it be deleted.
func (i *Inventory) Live(volume *v1.PersistentVolume) fate.Decision { return fate.Decision{} }

// Handles returns the names under which the disk of a volume is known, to compare it with volumes of other clusters.
func Handles(volume *v1.PersistentVolume) []string { return nil }
