package garbagecollector

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// maxEvents bounds the events of one tick: an event is a write.
	maxEvents = 25
	// maxNames bounds the names in one event.
	maxNames = 5
)

// EventLimits are those of the recorder of a collector. By default client-go leaves out most events about one object
// after the first 25.
var EventLimits = record.CorrelatorOptions{QPS: 1. / 30}

// referenceTo returns the reference to the object for events.
func referenceTo(o graph.Object) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID,
		ResourceVersion: o.Version,
	}
}
