package demo

import "time"

// kind says where an event was learned.
type kind string

const (
	// kindStep is what the demo, as an administrator, is about to do.
	kindStep kind = "step"
	// kindCheck is a step that only makes sure of the verdict.
	kindCheck kind = "check"
	// kindNote is what a step found.
	kindNote kind = "note"
	// kindWrite is a write of a volume or claim, from the API server's audit log.
	kindWrite kind = "write"
	// kindCall is a call that makes or deletes a volume, from the driver's call log.
	kindCall kind = "call"
	// kindState is what a volume or claim has become, from a watch.
	kindState kind = "state"
)

// Event is one line of the timeline.
type Event struct {
	Kind kind `json:"kind"`
	// Gate is HonorPVReclaimPolicy in the run that the event belongs to.
	Gate bool `json:"gate"`
	// Time is when it happened, Seconds the same since the run began.
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	// Who did it: "you", a program, or for other users their full name.
	Who string `json:"who"`
	// What happened, for a person to read.
	What string `json:"what"`
	// Volumes is how many volumes the storage system had then.
	Volumes int `json:"volumes"`
	// Verb is that of the API request, or the method of the CSI call.
	Verb string `json:"verb,omitempty"`
	// Object is what was asked for or has changed: resource/name[/subresource],
	// or the handle of a volume in the storage system.
	Object string `json:"object,omitempty"`
	// Code is the HTTP status of the answer, or the name of its gRPC code.
	Code string `json:"code,omitempty"`
	// Phase, Deleting, Finalizers and Gone are what a state is made of. Gone
	// means that the API server does not have the object any more.
	Phase      string   `json:"phase,omitempty"`
	Deleting   bool     `json:"deleting,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"`
	Gone       bool     `json:"gone,omitempty"`
}
