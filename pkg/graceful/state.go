package graceful

import "strconv"

// Existing says how an object is being deleted before a request.
type Existing int

const (
	// Live: the object is not being deleted.
	Live Existing = iota
	// Plain: deleted without a grace period, as by a stock API server.
	Plain
	// Forced: deleted with the grace period 0.
	Forced
	// Graceful: deleted with a deadline, which may have passed.
	Graceful
)

// String returns the name of the value.
func (e Existing) String() string { return name(int(e), "Live", "Plain", "Forced", "Graceful") }

// Request is what a request says of the grace period.
type Request int

const (
	// OtherWrite: the request is no DELETE.
	OtherWrite Request = iota
	// NoGrace: a DELETE without a grace period, or a deletion by the API server itself.
	NoGrace
	// Zero: a DELETE with the grace period 0, which is force.
	Zero
	// Earlier: a DELETE with a grace period that ends before the deadline of the object. A live object has none.
	Earlier
	// NotEarlier: a DELETE with a grace period that ends at the deadline of the object, or later.
	NotEarlier
)

// String returns the name of the value.
func (r Request) String() string {
	return name(int(r), "OtherWrite", "NoGrace", "Zero", "Earlier", "NotEarlier")
}

// NamesGrace reports whether the request is a DELETE with a grace period.
func (r Request) NamesGrace() bool { return r == Zero || r.named() }

// named reports whether the request is a DELETE with a grace period that is not 0.
func (r Request) named() bool { return r == Earlier || r == NotEarlier }

// Finalizers compares the finalizers before a request with those after the request.
type Finalizers int

const (
	// Held: the object has finalizers before and after.
	Held Finalizers = iota
	// FirstAdded: the request adds the first finalizer, as the propagation policies foreground and orphan do.
	FirstAdded
	// NoneLeft: the object has no finalizer after the request.
	NoneLeft
)

// String returns the name of the value.
func (f Finalizers) String() string { return name(int(f), "Held", "FirstAdded", "NoneLeft") }

// State is what the API server knows of one request for one object.
type State struct {
	Existing   Existing
	Request    Request
	Finalizers Finalizers
	// NoRoom: the annotations of the object would pass their limit with the annotation of the deletion window.
	NoRoom bool
}

// name returns the name of the value of an enum.
func name(value int, names ...string) string {
	if value < 0 || value >= len(names) {
		return "invalid(" + strconv.Itoa(value) + ")"
	}
	return names[value]
}
