package balancer

import "github.com/exeunt-io/exeunt/internal/enum"

// Kind is the kind of the object.
type Kind int

const (
	// ServiceLB: a Service of type LoadBalancer.
	ServiceLB Kind = iota
	// ServiceOther: a Service of another type.
	ServiceOther
	// Route: an Ingress or a Gateway.
	Route
	// Snapshot: a VolumeSnapshot.
	Snapshot
)

// String returns the name of the value.
func (k Kind) String() string {
	return enum.Name(k, "ServiceLB", "ServiceOther", "Route", "Snapshot")
}

// Content is what is known of the content of a VolumeSnapshot.
type Content int

const (
	// NoContent: there is none yet.
	NoContent Content = iota
	// ContentDelete: its policy is Delete.
	ContentDelete
	// ContentKept: its policy is Retain or unknown, it has the label, or an administrator made it.
	ContentKept
	// ContentUnread: it is named, and could not be read.
	ContentUnread
	// ContentOfGroup: the snapshot is a member of a group.
	ContentOfGroup
)

// String returns the name of the value.
func (c Content) String() string {
	return enum.Name(c, "NoContent", "ContentDelete", "ContentKept", "ContentUnread", "ContentOfGroup")
}

// State is what the decision rests on.
type State struct {
	Kind Kind
	// Preserved: the label is on the object or its namespace.
	Preserved bool
	// Deleting: the object or its namespace has a deletionTimestamp.
	Deleting bool
	// Held: a controller's finalizer is on the object.
	Held bool
	// Addressed: its status has an address.
	Addressed bool
	// LeadsToAPI: its address is that of the API server that we use.
	LeadsToAPI bool
	// Serving: volumes of a server behind it are used, or are to be deleted.
	Serving bool
	// Content is that of a VolumeSnapshot.
	Content Content
}

// Evident reports whether the end of the object shows the end of what its controller made (#31).
func (s State) Evident() bool { return s.Held || s.Kind != Snapshot && !s.Addressed }

// Action is what happens to the object.
type Action int

const (
	// Leave does nothing, and nothing is awaited.
	Leave Action = iota
	// Wait waits until the object, or its finalizer, is gone.
	Wait
	// Delete deletes the object.
	Delete
)

// String returns the name of the value.
func (a Action) String() string { return enum.Name(a, "Leave", "Wait", "Delete") }

// Reason is the reason of a decision.
type Reason string

const (
	// LeadsToAPI: without it the API server could not be reached.
	LeadsToAPI Reason = "LeadsToAPI"
	// Preserved: the label says so.
	Preserved Reason = "Preserved"
	// Terminating: the object is deleted already.
	Terminating Reason = "Terminating"
	// GroupMember: the snapshot of a group cannot be deleted alone.
	GroupMember Reason = "GroupMember"
	// PolicyRetain: the policy of its content is not Delete.
	PolicyRetain Reason = "PolicyRetain"
	// ContentUnreadable: the policy of its content is not known.
	ContentUnreadable Reason = "ContentUnreadable"
	// PolicyDelete: the policy of its content is Delete.
	PolicyDelete Reason = "PolicyDelete"
	// TypeChanged: its controller removes the load balancer of before.
	TypeChanged Reason = "TypeChanged"
	// Internal: it has no load balancer.
	Internal Reason = "Internal"
	// NoFinalizer: nothing shows that its controller made a load balancer of its own.
	NoFinalizer Reason = "NoFinalizer"
	// ServesVolumes: without it no pod could write to its volume, and no CSI driver delete one.
	ServesVolumes Reason = "ServesVolumes"
	// ServesBalancer: its controller deletes the load balancer.
	ServesBalancer Reason = "ServesBalancer"
)

// Decision is an action with its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// Decide returns what happens to the object. It is total and pure.
func Decide(s State) Decision {
	switch {
	case s.Kind != Snapshot && s.LeadsToAPI:
		return Decision{Leave, LeadsToAPI}
	case s.Preserved:
		return Decision{Leave, Preserved}
	case s.Deleting && s.Kind != ServiceOther:
		return Decision{Wait, Terminating}
	}
	switch s.Kind {
	case Snapshot:
		return decideSnapshot(s)
	case ServiceLB:
		return decideService(s)
	case ServiceOther:
		return decideOther(s)
	default:
		return decideRoute(s)
	}
}

func decideSnapshot(s State) Decision {
	switch s.Content {
	case ContentOfGroup:
		return Decision{Leave, GroupMember}
	case ContentKept:
		return Decision{Leave, PolicyRetain}
	case ContentUnread: // its policy may be Retain
		return Decision{Wait, ContentUnreadable}
	default:
		return Decision{Delete, PolicyDelete}
	}
}

func decideService(s State) Decision {
	if s.Serving {
		return Decision{Wait, ServesVolumes}
	}
	return Decision{Delete, ServesBalancer}
}

// decideOther awaits the load balancer of a Service whose type was changed.
func decideOther(s State) Decision {
	if s.Held {
		return Decision{Wait, TypeChanged}
	}
	return Decision{Leave, Internal}
}

func decideRoute(s State) Decision {
	if s.Held {
		return Decision{Delete, ServesBalancer}
	}
	return Decision{Leave, NoFinalizer}
}
