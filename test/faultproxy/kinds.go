package faultproxy

import "maps"

// Kind is a kind of fault.
type Kind string

// Faults of requests. The rate is the probability per request to which the kind applies.
const (
	// Conflict: a PATCH, or a PUT that names a version, is refused with 409 and has no effect.
	Conflict Kind = "conflict"
	// TooManyRequests: any request is refused with 429 and Retry-After.
	TooManyRequests Kind = "too-many-requests"
	// TooManyRequestsBare: any request is refused with 429 without Retry-After.
	TooManyRequestsBare Kind = "too-many-requests-bare"
	// InternalError: any request is refused with 500.
	InternalError Kind = "internal-error"
	// Unavailable: any request is refused with 503.
	Unavailable Kind = "unavailable"
	// Timeout: any request is refused with 504.
	Timeout Kind = "timeout"
	// UnknownPath: a request that names an object is refused with 404, and the answer does not name it.
	UnknownPath Kind = "unknown-path"
	// DeniedNotFound, DeniedConflict, DeniedInvalid, DeniedForbidden and DeniedGone: an admission webhook denies a write
	// that names an object with 404, 409, 422, 403 or 410 and the name of the object. The write has no effect.
	DeniedNotFound  Kind = "denied-not-found"
	DeniedConflict  Kind = "denied-conflict"
	DeniedInvalid   Kind = "denied-invalid"
	DeniedForbidden Kind = "denied-forbidden"
	DeniedGone      Kind = "denied-gone"
	// CutBefore: the request is cut and does not reach the API server.
	CutBefore Kind = "cut-before"
	// CutAfter: a write takes effect and its answer is cut.
	CutAfter Kind = "cut-after"
	// ErrorAfter: a write takes effect and is answered with 500.
	ErrorAfter Kind = "error-after"
	// TimeoutAfter: a write takes effect and is answered with 504.
	TimeoutAfter Kind = "timeout-after"
	// DelayRequest: the request reaches the API server late.
	DelayRequest Kind = "delay-request"
	// DelayAnswer: the request is carried out at once and answered late.
	DelayAnswer Kind = "delay-answer"
	// SlowList: the answer to a list arrives in small pieces.
	SlowList Kind = "slow-list"
	// StaleList: a list that allows an older state returns an older state.
	StaleList Kind = "stale-list"
	// TooLargeVersion: a read that names a version reaches an API server that has not seen
	// this version yet, which answers 504.
	TooLargeVersion Kind = "too-large-version"
	// Gone: a watch from a version, or the next page of a list, is answered with HTTP 410.
	Gone Kind = "gone"
	// Disconnect: all connections of the program are cut, with all of their requests.
	Disconnect Kind = "disconnect"
	// Outage: all connections are cut, and new connections are refused for some time.
	Outage Kind = "outage"
)

// Faults of watches. The rate is the probability per Config.Tick of an open watch.
const (
	// WatchDrop: the stream ends between two events.
	WatchDrop Kind = "watch-drop"
	// WatchCut: the stream is cut within an event.
	WatchCut Kind = "watch-cut"
	// WatchStall: events arrive late, all at once.
	WatchStall Kind = "watch-stall"
	// WatchExpired: an ERROR event with code 410 ends the stream.
	WatchExpired Kind = "watch-expired"
)

// requestKinds are the faults of requests. A request has at most one fault: the first that
// applies.
var requestKinds = []Kind{
	Conflict, CutAfter, ErrorAfter, TimeoutAfter, StaleList, SlowList, TooLargeVersion, Gone,
	TooManyRequests, TooManyRequestsBare, InternalError, Unavailable, Timeout,
	CutBefore, DelayRequest, DelayAnswer, Disconnect, Outage, UnknownPath,
	DeniedNotFound, DeniedConflict, DeniedInvalid, DeniedForbidden, DeniedGone,
}

// watchKinds are the faults of open watches, at most one per tick.
var watchKinds = []Kind{WatchDrop, WatchCut, WatchExpired, WatchStall}

// isAfter reports whether the request takes effect before the fault.
func (k Kind) isAfter() bool { return k == CutAfter || k == ErrorAfter || k == TimeoutAfter }

// Kinds returns all kinds of faults.
func Kinds() []Kind { return append(append([]Kind{}, requestKinds...), watchKinds...) }

// Rates are the probabilities of faults, from 0 to 1. The zero value has no faults.
type Rates struct {
	// Faults of all requests and watches except those of Leases.
	Faults map[Kind]float64
	// Leases are the rates for the Leases of leader election.
	Leases map[Kind]float64
}

// clone returns a copy that the caller cannot change.
func (r Rates) clone() Rates {
	return Rates{Faults: maps.Clone(r.Faults), Leases: maps.Clone(r.Leases)}
}

// Uniform returns the same rate for all kinds.
func Uniform(rate float64) map[Kind]float64 {
	rates := map[Kind]float64{}
	for _, kind := range Kinds() {
		rates[kind] = rate
	}
	return rates
}
