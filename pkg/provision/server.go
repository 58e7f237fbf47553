package provision

import "github.com/exeunt-io/exeunt/internal/enum"

// Server is who serves a claim, where each node has a provisioner of its own.
type Server int

const (
	// ThisProcess serves the claim.
	ThisProcess Server = iota
	// NoProcess: no node is selected yet.
	NoProcess
	// OtherProcess: the provisioner of another node serves the claim and its open calls.
	OtherProcess
)

// String returns the name of the process.
func (s Server) String() string { return enum.Name(s, "ThisProcess", "NoProcess", "OtherProcess") }

// ServerOf returns who serves a claim with the selected node, "" for none.
func ServerOf(selected, own string) Server {
	switch selected {
	case "":
		return NoProcess
	case own:
		return ThisProcess
	}
	return OtherProcess
}
