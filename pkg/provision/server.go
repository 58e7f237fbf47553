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

// Room is whether a node has room for the volume of a claim.
type Room int

const (
	// NotAsked: the driver was not asked.
	NotAsked Room = iota
	// Enough: it has, or the driver does not tell.
	Enough
	// TooLittle: it has not.
	TooLittle
)

// Choice is what is known of a claim that may be for any node, on one of them.
type Choice struct {
	// Wanted: the claim names the driver, has no volume and is not being deleted.
	Wanted bool
	// Server is who serves it.
	Server Server
	// Classed: its class is known.
	Classed bool
	// Immediate: its class does not wait for the scheduler, and nodes are to choose.
	Immediate bool
	// Allowed: the class allows this node.
	Allowed bool
	Room    Room
}

// ChoiceAction is the next step of a node for a claim.
type ChoiceAction int

const (
	// Leave: the claim is not, or no longer, to be chosen for.
	Leave ChoiceAction = iota
	// AskRoom: ask the driver whether there is room, and decide again.
	AskRoom
	// ComeBack: try again later.
	ComeBack
	// Choose this node.
	Choose
)

// DecideChoice returns the next step of a node for a claim, once the time has come
// that was drawn for it. Whoever writes first has chosen.
func DecideChoice(c Choice) ChoiceAction {
	switch {
	case !c.Wanted || c.Server != NoProcess:
		return Leave
	case !c.Classed:
		return ComeBack
	case !c.Immediate || !c.Allowed:
		return Leave
	case c.Room == NotAsked:
		return AskRoom
	case c.Room == TooLittle:
		return ComeBack
	}
	return Choose
}
