package rollback

import "github.com/exeunt-io/exeunt/internal/enum"

// Server is the program that does the work of a program of Exeunt.
type Server int

const (
	// ServerUnseen: nothing shows whether the program of Exeunt still runs.
	ServerUnseen Server = iota
	// ServerExeunt: the program of Exeunt runs.
	ServerExeunt
	// ServerUpstream: another program leads.
	ServerUpstream
	// ServerNone: the program of Exeunt has ended, and no other program was seen.
	ServerNone
)

// String returns the name of the value.
func (s Server) String() string { return enum.Name(s, "unseen", "Exeunt", "upstream", "none") }

// Ended reports whether the program of Exeunt runs no more.
func (s Server) Ended() bool { return s == ServerUpstream || s == ServerNone }

// LeaderLease is the state of a leader Lease by the clock of the API server.
type LeaderLease int

const (
	// LeaseUnseen: the Lease could not be read.
	LeaseUnseen LeaderLease = iota
	// LeaseAbsent: the Lease does not exist.
	LeaseAbsent
	// LeaseExeunt: the Lease is valid, and its holder is a program of Exeunt.
	LeaseExeunt
	// LeaseOther: the Lease is valid, and its holder is another program.
	LeaseOther
	// LeaseExpired: the Lease has expired, or was given up, a short time ago.
	LeaseExpired
	// LeaseExpiredTwice: the Lease expired at least its duration ago.
	LeaseExpiredTwice
)

// String returns the name of the value.
func (l LeaderLease) String() string {
	return enum.Name(l, "unseen", "absent", "Exeunt", "other", "expired", "expired twice")
}

// Pods tells whether a pod runs the program of Exeunt.
type Pods int

const (
	// PodsUnseen: pods could not be listed.
	PodsUnseen Pods = iota
	// PodsAbsent: no pod runs the program.
	PodsAbsent
	// PodsPresent: a pod runs the program, or will.
	PodsPresent
)

// String returns the name of the value.
func (p Pods) String() string { return enum.Name(p, "unseen", "absent", "present") }

// ProgramState is the observed state of a program of Exeunt.
type ProgramState struct {
	Lease LeaderLease
	Pods  Pods
	// Elected: the program worked only while it had the leader Lease.
	Elected bool
	// Named: the administrator says that the program has ended.
	Named bool
}

// Server returns which program serves. Processes outside of the cluster have no pod, and
// programs without leader election no Lease: only the administrator knows that these ended.
func (s ProgramState) Server() Server {
	seen := s.seen()
	switch {
	case seen != ServerUnseen || !s.Named:
		return seen
	case s.Lease == LeaseUnseen, s.Lease == LeaseExpired: // a leader may hold or renew it
		return ServerUnseen
	case s.Lease == LeaseOther:
		return ServerUpstream
	}
	return ServerNone
}

// seen returns which program serves as far as Leases and pods show.
func (s ProgramState) seen() Server {
	switch {
	case s.Lease == LeaseExeunt:
		return ServerExeunt
	case s.Lease == LeaseOther && s.Elected:
		return ServerUpstream
	case s.Pods == PodsPresent:
		return ServerExeunt
	case s.Lease == LeaseExpiredTwice && s.Pods == PodsAbsent && s.Elected:
		return ServerNone
	}
	return ServerUnseen
}

// Contradicted reports whether the administrator says that the program has ended, and it
// was seen.
func (s ProgramState) Contradicted() bool { return s.Named && s.Server() == ServerExeunt }
