package journal

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Custody identifies the term in which a Lease of the journal was written.
type Custody struct {
	// LeaderLease is the UID of the leader Lease, "" without leader election.
	LeaderLease types.UID `json:"leaderLease,omitempty"`
	// Transitions is leaseTransitions of the leader Lease in that term.
	Transitions int32 `json:"transitions,omitempty"`
	// Written is the time of the last write, in seconds since 1970. It counts only
	// without leader election.
	Written int64 `json:"written,omitempty"`
}

// MaxCustodyAge is how old the journal of a process without leader election may be for
// its custody to be unbroken.
const MaxCustodyAge = 10 * time.Minute

// Unbroken reports whether no other program can have led between the recorded term
// and the current one: the same leader Lease, which changed hands at most once.
func Unbroken(recorded, current Custody) bool {
	switch {
	case recorded.LeaderLease != current.LeaderLease:
		return false
	case current.LeaderLease == "":
		age := current.Written - recorded.Written // in seconds; what overflows is negative
		return recorded.Written > 0 && age >= 0 && age <= int64(MaxCustodyAge/time.Second)
	}
	changes := int64(current.Transitions) - int64(recorded.Transitions)
	return changes == 0 || changes == 1
}

// Precedes reports whether the term is certainly earlier than the other one.
func (c Custody) Precedes(other Custody) bool {
	return c.LeaderLease != "" && c.LeaderLease == other.LeaderLease && c.Transitions < other.Transitions
}

// String returns the custody as the value of an annotation.
func (c Custody) String() string {
	text, err := json.Marshal(c)
	if err != nil { // strings and integers only
		return ""
	}
	return string(text)
}

// ParseCustody is the inverse of String; what cannot be read matches no term.
func ParseCustody(text string) Custody {
	var c Custody
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.LeaderLease == "" && c.Written <= 0 {
		return Custody{LeaderLease: "unknown"}
	}
	return c
}
