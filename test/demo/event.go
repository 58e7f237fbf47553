package demo

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// kind is the source of an event.
type kind string

const (
	// kindStep: the demo, as an administrator, is about to do something.
	kindStep kind = "step"
	// kindCheck: a step that only confirms the verdict.
	kindCheck kind = "check"
	// kindNote: the result of a step.
	kindNote kind = "note"
	// kindWrite: a write of a volume or claim, from the API server's audit log.
	kindWrite kind = "write"
	// kindCall: a call that creates or deletes a volume, from the driver's call log.
	kindCall kind = "call"
	// kindState: the new state of a volume or claim, from a watch.
	kindState kind = "state"
)

// Event is one line of the timeline.
type Event struct {
	Kind kind `json:"kind"`
	// Gate is HonorPVReclaimPolicy in the run that the event belongs to.
	Gate bool `json:"gate"`
	// Time is when the event happened, Seconds the time since the run began.
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	// Who is the actor: "you", a program, or the full name of another user.
	Who string `json:"who"`
	// What is the event in words.
	What string `json:"what"`
	// Volumes is the number of volumes in the storage system at that time.
	Volumes int `json:"volumes"`
	// Verb is the verb of the API request, or the method of the CSI call.
	Verb string `json:"verb,omitempty"`
	// Object is resource/name[/subresource] of an API object, or the handle of a volume in
	// the storage system.
	Object string `json:"object,omitempty"`
	// Code is the HTTP status, or the name of the gRPC code.
	Code string `json:"code,omitempty"`
	// Phase, Deleting, Finalizers and Gone describe a state. Gone: the object was deleted
	// from the API.
	Phase      string   `json:"phase,omitempty"`
	Deleting   bool     `json:"deleting,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"`
	Gone       bool     `json:"gone,omitempty"`
	// Told: a write on the timeline says all about this state.
	Told bool `json:"told,omitempty"`

	// After is the object that a write returned, if it is known.
	After *unstructured.Unstructured `json:"-"`
	// UID and Version are those of the object of a state.
	UID     types.UID `json:"-"`
	Version string    `json:"-"`
}
