package teardown

import (
	"time"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// Kind is the kind of an external resource.
type Kind string

// The kinds of items.
const (
	Volume       Kind = "Volume"
	Snapshot     Kind = "Snapshot"
	LoadBalancer Kind = "LoadBalancer"
	Ingress      Kind = "Ingress"
	Gateway      Kind = "Gateway"
	Participant  Kind = "Participant"
)

// Plan is what is to happen to an item.
type Plan string

// The two plans.
const (
	PlanDelete Plan = "delete"
	PlanKeep   Plan = "keep"
)

// Fate is what became of an item.
type Fate string

const (
	// Planned: nothing happened yet.
	Planned Fate = "planned"
	// Gone: it is gone.
	Gone Fate = "gone"
	// Kept: it was left as it was, and is named.
	Kept Fate = "kept"
	// Remains: it was to be deleted, and is still there.
	Remains Fate = "remains"
	// Unknown: nothing shows whether it is there.
	Unknown Fate = "unknown"
)

// Evidence is what shows that an external resource is gone.
type Evidence string

const (
	// ByFinalizer: its controller holds the object until the resource is gone.
	ByFinalizer Evidence = "finalizer"
	// NoEvidence: the object goes before the resource, or without it.
	NoEvidence Evidence = "none"
)

// Object names an object of the cluster.
type Object = blocker.Object

// Item is one external resource, or a participant.
type Item struct {
	Kind   Kind   `json:"kind"`
	Object Object `json:"object"`
	// Claim is NAMESPACE/NAME of the claim of a PersistentVolume, ClaimUID its UID.
	Claim    string `json:"claim,omitempty"`
	ClaimUID string `json:"claimUID,omitempty"`
	// ExternalID is the volume handle, the address, or the handle of the snapshot.
	ExternalID string `json:"externalID"`
	Driver     string `json:"driver"`
	// Size is the capacity in bytes.
	Size int64 `json:"size"`
	// Created is when the object was created, for its age.
	Created  time.Time `json:"created"`
	Plan     Plan      `json:"plan"`
	Reason   string    `json:"reason"`
	Fate     Fate      `json:"fate"`
	Evidence Evidence  `json:"evidence"`
	// Blockers are why the item remains, as "exeunt why -o json" says it.
	Blockers []blocker.Blocker `json:"blockers"`
	// InUse: it is kept, and still attached, or used by a pod or claim that is to go: the teardown waits for that.
	InUse bool `json:"-"`
	// Attachment is the VolumeAttachment of a kept volume, "" if there is none.
	Attachment string `json:"-"`
}

// Awaited reports whether the teardown waits for the item.
func (i *Item) Awaited() bool { return i.Plan == PlanDelete && i.Fate != Gone || i.InUse }

// Cluster says which cluster was read.
type Cluster struct {
	// ID is the UID of namespace kube-system.
	ID      string `json:"id"`
	Server  string `json:"server"`
	Version string `json:"version"`
	Nodes   int    `json:"nodes"`
}

// Problem is what refuses, or what a person should know, with the next command.
type Problem struct {
	Reason string `json:"reason"`
	Text   string `json:"text"`
	Next   string `json:"next"`
	// Refuses: the teardown does not start while the problem is there.
	Refuses bool `json:"refuses"`
}

// Worker is a program that deletes what is outside of the cluster, as far as it can be seen.
type Worker struct {
	// For is the CSI driver, or the kind of the objects.
	For string `json:"for"`
	// Objects is how many objects it has to delete.
	Objects int `json:"objects"`
	// Where names its workload or the holder of its Lease, "" if it was not seen.
	Where string `json:"where"`
	// State is "acts", "fails", "gone" or "unseen".
	State string `json:"state"`
}

// Totals counts the items of a kind, and their bytes.
type Totals struct {
	Delete  int   `json:"delete"`
	Keep    int   `json:"keep"`
	Gone    int   `json:"gone"`
	Remains int   `json:"remains"`
	Unknown int   `json:"unknown"`
	Bytes   int64 `json:"bytes"`
}

// Document is the plan and the report of a teardown, the output of "exeunt teardown -o json".
type Document struct {
	Cluster  Cluster    `json:"cluster"`
	Phase    Phase      `json:"phase"`
	Reason   Reason     `json:"reason"`
	Started  *time.Time `json:"started"`
	Deadline *time.Time `json:"deadline"`
	Ended    *time.Time `json:"ended"`
	Items    []Item     `json:"items"`
	// Totals are by kind.
	Totals   map[Kind]Totals `json:"totals"`
	Workers  []Worker        `json:"workers,omitempty"`
	Problems []Problem       `json:"problems"`
	// Incomplete are the sentences that say what could not be read.
	Incomplete []string `json:"incomplete"`
}

// Count sets the totals from the items.
func (d *Document) Count() {
	d.Totals = map[Kind]Totals{}
	for i := range d.Items {
		item, t := &d.Items[i], d.Totals[d.Items[i].Kind]
		if item.Plan == PlanKeep {
			t.Keep++
		} else {
			t.Delete++
		}
		switch item.Fate {
		case Gone:
			t.Gone++
		case Remains:
			t.Remains++
		case Unknown:
			t.Unknown++
		case Planned, Kept:
		}
		t.Bytes += item.Size
		d.Totals[item.Kind] = t
	}
}
