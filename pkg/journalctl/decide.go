package journalctl

import (
	"github.com/exeunt-io/exeunt/internal/enum"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// command is the command that the administrator runs on an unresolved entry.
type command int

const (
	// finish repeats the request and records the volume.
	finish command = iota
	// drop removes the entry.
	drop
)

// String returns the name of the command.
func (c command) String() string { return enum.Name(c, "finish", "drop") }

// verdict is the result of the check of a command.
type verdict int

const (
	// refuse: the command is useless or does harm.
	refuse verdict = iota
	// confirm: a volume may be left behind in the storage system; the administrator must agree.
	confirm
	// proceed: the command is safe.
	proceed
)

// String returns the name of the verdict.
func (v verdict) String() string { return enum.Name(v, "refuse", "confirm", "proceed") }

// decide checks a command on an unresolved entry. Bound: the claim of the entry is, or was,
// bound to the volume of the entry.
func decide(c command, bound bool, volume storage.Record) verdict {
	switch {
	case c == drop && volume == storage.RecordPresent:
		return proceed
	case c == drop:
		return confirm
	case volume != storage.RecordAbsent || bound:
		return refuse
	}
	return proceed
}
