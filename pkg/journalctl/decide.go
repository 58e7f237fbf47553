package journalctl

import (
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Action is what the administrator wants.
type Action int

const (
	// Finish: repeat the request and record the volume.
	Finish Action = iota
	// Drop: forget the entry.
	Drop
)

// Verdict is whether the action may be carried out.
type Verdict int

const (
	// Refuse: it would do harm, or nothing.
	Refuse Verdict = iota
	// Confirm: a volume may be left behind in the storage system.
	Confirm
	// Proceed: it is safe.
	Proceed
)

// Decide returns whether the action may be carried out on an unresolved entry whose claim
// is, or was, bound to the volume of the entry, or not.
func Decide(action Action, bound bool, volume storage.Record) Verdict {
	switch {
	case action == Drop && volume == storage.RecordPresent:
		return Proceed
	case action == Drop:
		return Confirm
	case volume != storage.RecordAbsent || bound:
		return Refuse
	}
	return Proceed
}
