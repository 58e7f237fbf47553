package provision

// Server is who serves a claim, where each node has a provisioner of its own.
type Server int

const (
	// ThisProcess serves the claim.
	ThisProcess Server = iota
	// NoProcess: no node was chosen yet.
	NoProcess
	// OtherProcess: it is that of another node, and so is whatever it has asked for.
	OtherProcess
)

// ServerOf returns who serves a claim for which the node was chosen, "" for none.
func ServerOf(chosen, own string) Server {
	switch chosen {
	case "":
		return NoProcess
	case own:
		return ThisProcess
	}
	return OtherProcess
}
