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

// ServerOf returns who serves a claim with the selected node, "" for none. The process serves the claims
// of its own node only, or all claims if own is "".
func ServerOf(selected, own string) Server {
	switch {
	case own == "", selected == own:
		return ThisProcess
	case selected == "":
		return NoProcess
	}
	return OtherProcess
}
