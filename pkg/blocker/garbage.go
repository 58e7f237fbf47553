package blocker

// The events of garbage-collector about owners and dependents, beside DeletionWaiting.
const (
	// GarbageEventSource is the component that the events name. It is upstream's.
	GarbageEventSource = "garbage-collector-controller"
	// UnreadEvent: an owner was released without waiting for kinds that could not be read.
	UnreadEvent = "DependentsUnread"
	// CycleEvent: an owner was released from a cycle of owners that block each other.
	CycleEvent = "OwnersWaitForEachOther"
	// OtherCollectorEvent: another garbage collector works in the same cluster.
	OtherCollectorEvent = "OtherGarbageCollector"
	// InvalidNamespaceEvent: an owner reference names an owner in another namespace. It is upstream's.
	InvalidNamespaceEvent = "OwnerRefInvalidNamespace"
)
