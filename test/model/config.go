package model

import (
	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// Config is a small world to explore.
type Config struct {
	Name string
	// Programs run in the world.
	Programs []Program
	// Admission: the admission policy adds the finalizer as soon as the data may be deleted.
	Admission bool
	// Classes are the storage classes that the programs provision for. Upstream: a program
	// of upstream takes part.
	Classes  []string
	Upstream bool
	// Objects exist at the start; Disks are the volumes in storage, by their handles.
	Objects []server.Object
	Disks   []string
	// States bounds the exploration of a large world to its first states, breadth-first; 0 explores
	// all.
	States int
	// Kept are the handles of disks that a user keeps without a volume.
	Kept []string
	// GivenUp: no program has to look after these disks.
	GivenUp bool
	// Exempt are the UIDs of objects that users left in a state of their own choice.
	Exempt []types.UID
	// Partial: a program is left out, so nothing comes to rest as it should.
	Partial bool
	// Restarted: the programs ended at some moment before the start, so calls may be repeated.
	Restarted bool
	// Terms is the number of leaders that each program had before the start.
	Terms int32
	// Users are what users can do, each once. Ordered: none before those in front of it.
	Users   []UserAction
	Ordered bool
	// Crashes, Losses, Errors and Hours are how often a program crashes or loses its lease, an
	// answer is lost, a call fails without effect, and an hour passes.
	Crashes, Losses, Errors, Hours int
	// Denials are how often an admission webhook denies a write, Undos how often it takes back a change.
	Denials, Undos int
	// Restores are how often etcd may be restored from a backup, Backups how often a backup may be taken besides
	// that of the beginning. Unled are the programs without leader election: they live on.
	Restores, Backups int
	Unled             []string
	// OldVersions: objects come back in their old versions, never in higher ones.
	OldVersions bool
	// Filled: etcd was restored before the start, when the disks were in use.
	Filled bool
	// Delays are how often a write gets no answer and may take effect within a minute. Delaying are
	// the resources of such writes, nil for all.
	Delays   int
	Delaying []string
	// Unsteady are the programs that crash or start with an old list, nil for all.
	Unsteady []string
	// WrongAnswers are how often an answer of the driver is not what it did. Switches are how often a
	// program stops and starts with the other gate HonorPVReclaimPolicy.
	WrongAnswers, Switches int
	// Codes are the codes with which CreateVolume fails if a call fails, nil for a usual one.
	Codes []codes.Code
	// Interruptions are how often a program's pass may be interrupted by what another program,
	// a cache or a user does; -1 for any number. A crash is no interruption.
	Interruptions int
	// Stalls are how often a watch stalls for a while: passes begin although the cache does not
	// show what was written. -1: a pass may begin at any time, whatever the caches show.
	Stalls int
	// Lists: a stalled watch may also end, and a list replaces its object in the cache. Slow: it may
	// also show one version, and stall on.
	Lists, Slow bool
	// OldLists is how often a program may start with a list that shows an old version of one object, or
	// not yet. Its watch then stalls. Needs EveryVersion.
	OldLists int
	// Stalling are the resources whose watches stall, nil for all.
	Stalling []string
	// EveryVersion: caches see every version of an object; otherwise only the present one.
	// SkipVersions: they can also skip some.
	EveryVersion, SkipVersions bool
	// Eager: a pass that sends no call is taken before anything else of its program.
	Eager bool
	// SeeWithinPass: caches also change within a pass.
	SeeWithinPass bool
	// FormerLeaders: a leader that loses its lease ends its last pass beside the new one.
	FormerLeaders bool
	// Excused are violations that a program of upstream causes.
	Excused []Excuse
	// UntilExcused: the exploration ends once every excuse was needed.
	UntilExcused bool
}

// diskPrefix and the name of a disk are its handle.
const diskPrefix = "disk-of-"

// UserAction is what a user, or another program, does once.
type UserAction struct {
	// Says is the action in a line.
	Says string
	// Request returns the request for the objects; false while the action is impossible.
	Request func(server.Cluster) (server.Request, bool)
	// GivesUp: who changes a volume so wants no program to look after its disk any more.
	GivesUp bool
	// Disk is the handle of a disk that exists from then on, "" for none.
	Disk string
	// Certain: it happens sooner or later.
	Certain bool
}

// Program is a program of a configuration.
type Program struct {
	// Name is how stories call the program. A lab has one program of a name.
	Name  string
	Build process.Build
	// Loops are the numbers of its loops that run, nil for all.
	Loops []int
	// Caches are the resources that it caches.
	Caches []string
	// Actor is whose rules its writes have.
	Actor check.Actor
	// Honor and Journaled are its gates.
	Honor, Journaled bool
	// Concurrent: its loops work at the same time, one pass each, and CreateVolume may take effect
	// long after its pass began.
	Concurrent bool
}

// machine names the machine that runs the program.
func (p Program) machine() string {
	if p.Concurrent {
		return p.Name + ", concurrent"
	}
	return p.Name
}
