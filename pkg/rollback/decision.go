package rollback

import "github.com/exeunt-io/exeunt/internal/enum"

// Action is what rollback does with an object.
type Action int

const (
	// Keep leaves the object as it is for good.
	Keep Action = iota
	// Wait leaves the object until something else has happened.
	Wait
	// Refuse leaves the object until the administrator has decided.
	Refuse
	// Remove removes the annotation, the finalizer or the Lease.
	Remove
	// SaveAndRemove writes the open entries of the Lease to a file, then removes the Lease.
	SaveAndRemove
	// Rewrite writes the annotation in another spelling, which means the same.
	Rewrite
)

// String returns the name of the value.
func (a Action) String() string {
	return enum.Name(a, "keep", "wait", "refuse", "remove", "save and remove", "rewrite")
}

// Reason is why rollback does so.
type Reason int

const (
	// Unneeded: no program reads the object any more.
	Unneeded Reason = iota
	// ExeuntServes: a program of Exeunt still uses the object.
	ExeuntServes
	// ServerNotSeen: nothing shows whether a program of Exeunt still uses the object.
	ServerNotSeen
	// DeletionOpen: the provisioner of Exeunt will delete the disk, and no other program will.
	DeletionOpen
	// DiskWouldLeak: without the annotation nobody deletes the disk.
	DiskWouldLeak
	// DiskAbandoned: the administrator gives up the disk.
	DiskAbandoned
	// PodStandsBy: a pod of the provisioner of Exeunt is there while another program serves.
	PodStandsBy
	// EntriesOpen: the provisioner of Exeunt works on entries of the Lease.
	EntriesOpen
	// EntriesInterrupted: the provisioner of Exeunt ended in the middle of its work on entries,
	// and no other program serves.
	EntriesInterrupted
	// EntriesLeft: no program will work on the entries of the Lease.
	EntriesLeft
	// UpstreamRemoves: upstream's programs remove the finalizer.
	UpstreamRemoves
	// NobodyServes: the administrator says that nobody will remove the finalizer, and nobody
	// was seen who could.
	NobodyServes
	// RemoverSeen: a program that removes the finalizer was seen.
	RemoverSeen
	// RemoverNotRead: it could not be read whether a program removes the finalizer.
	RemoverNotRead
	// ClaimUsesVolume: the finalizer protects a volume in use.
	ClaimUsesVolume
	// LaterVersion: this version does not know the annotation or finalizer of Exeunt.
	LaterVersion
	// InformersUnaware: informers have the object as the API server of Exeunt served it, and get no event.
	InformersUnaware
	// NodeTerminates: the node is being deleted, and node-terminator ends it.
	NodeTerminates
	// OthersTerminate: node-terminator ends other nodes, and so must not be stopped.
	OthersTerminate
)

// sentences complete the sentence "left as it is: ..." or "removed: ...".
var sentences = [...]string{
	Unneeded:           "no program reads it any more",
	ExeuntServes:       "a program of Exeunt still uses it",
	ServerNotSeen:      "neither Lease nor pod shows whether a program of Exeunt still uses it",
	DeletionOpen:       "the provisioner of Exeunt deletes the disk once the claim is gone; upstream's would not",
	DiskWouldLeak:      "without the annotation nobody deletes the disk",
	DiskAbandoned:      "you gave up the disk, which stays in storage",
	PodStandsBy:        "a provisioner of Exeunt, perhaps of another driver, runs in this namespace and may lead again: replace its pod first",
	EntriesOpen:        "the provisioner of Exeunt works on its entries",
	EntriesInterrupted: "the provisioner of Exeunt ended in the middle of these requests, and no other provisioner serves the driver",
	EntriesLeft:        "its open entries are saved to a file first",
	UpstreamRemoves:    "upstream's program removes it in time",
	NobodyServes:       "you say that nobody serves it, and nobody was seen",
	RemoverSeen:        "a program that removes it in time was seen",
	RemoverNotRead:     "it could not be read whether a program serves it",
	ClaimUsesVolume:    "it protects a volume that a claim uses",
	LaterVersion:       "a later version of Exeunt added it; use the exeunt of that version",
	InformersUnaware:   "so that informers read how this API server serves it; the deadline stays",
	NodeTerminates:     "it is being deleted, and node-terminator ends it",
	OthersTerminate:    "node-terminator ends other nodes, runs until then, and would add it again",
}

// String returns the name of the value.
func (r Reason) String() string {
	return enum.Name(r, "Unneeded", "ExeuntServes", "ServerNotSeen", "DeletionOpen", "DiskWouldLeak", "DiskAbandoned",
		"PodStandsBy",
		"EntriesOpen", "EntriesInterrupted", "EntriesLeft", "UpstreamRemoves", "NobodyServes", "RemoverSeen",
		"RemoverNotRead", "ClaimUsesVolume", "LaterVersion", "InformersUnaware", "NodeTerminates", "OthersTerminate")
}

// Sentence explains the reason to the administrator.
func (r Reason) Sentence() string {
	if r < 0 || int(r) >= len(sentences) {
		return r.String()
	}
	return sentences[r]
}

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason Reason
}

// Removes reports whether something is removed.
func (d Decision) Removes() bool { return d.Action == Remove || d.Action == SaveAndRemove }

// Changes reports whether something is removed or rewritten.
func (d Decision) Changes() bool { return d.Removes() || d.Action == Rewrite }
