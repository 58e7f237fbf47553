package model

import (
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/types"

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

// initial returns the first state.
func (w *world) initial() *State {
	s := &State{
		instances: make([]instance, len(w.config.Programs)),
		crashes:   int8(w.config.Crashes), losses: int8(w.config.Losses), errors: int8(w.config.Errors), hours: int8(w.config.Hours),
		denials: int8(w.config.Denials), undos: int8(w.config.Undos),
		restores: int8(w.config.Restores), backups: int8(w.config.Backups),
		wrongAnswers: int8(w.config.WrongAnswers), switches: int8(w.config.Switches),
		interruptions: int8(w.config.Interruptions), stalls: int8(w.config.Stalls), oldLists: int8(w.config.OldLists), delays: int8(w.config.Delays),
	}
	for _, object := range w.config.Objects {
		s = w.put(s, w.slot(object.Key), w.intern(object))
	}
	s = w.backedUp(s)
	for i := range s.instances {
		s.instances[i].terms = w.config.Terms
	}
	for _, handle := range w.config.Disks {
		s.disks = union(s.disks, w.internDisk(disk{handle: handle, name: strings.TrimPrefix(handle, diskPrefix)}))
	}
	for _, handle := range w.config.Kept {
		s.kept = union(s.kept, w.diskWith(s, handle))
	}
	if w.config.GivenUp {
		s.givenUp = slices.Clone(s.disks)
	}
	if w.config.Filled {
		s.filled = slices.Clone(s.disks)
	}
	return s
}

// userSteps returns what users can still do.
func (w *world) userSteps(s *State) []Step {
	var all []Step
	for i := range w.config.Users {
		if step, possible := w.userStep(s, i); possible {
			all = append(all, step)
		}
	}
	return all
}

// userStep returns what a user does; false if it is impossible.
func (w *world) userStep(s *State, i int) (Step, bool) {
	action := w.config.Users[i]
	if s.done&(1<<i) != 0 || w.config.Ordered && s.done != 1<<i-1 {
		return Step{}, false
	}
	request, possible := action.Request(w.cluster(s))
	if !possible {
		return Step{}, false
	}
	after, result, err := w.serve(s, request)
	if err != nil || result.response.Code >= http.StatusBadRequest {
		return Step{}, false
	}
	after = after.clone()
	after.done |= 1 << i
	if action.Disk != "" {
		after.disks = union(after.disks, w.internDisk(disk{handle: action.Disk}))
	}
	w.giveUpDeleted(s, after)
	if action.GivesUp {
		after.givenUp = w.givenUp(s, after.givenUp, request)
	}
	return Step{After: after, Says: action.Says, Free: action.Certain}, true
}

// givenUp returns the disks that are given up once a user has changed a volume by the request,
// besides those that were given up before. The disk may have been deleted a moment ago.
func (w *world) givenUp(s *State, before []diskID, request server.Request) []diskID {
	name := strings.TrimPrefix(request.Path, volumesPath+"/")
	for _, volume := range w.snapshot(s).Volumes {
		if volume.Name == name && volume.Spec.CSI != nil {
			for _, id := range slices.Concat(s.disks, s.deleted) {
				if w.disks[id].handle == volume.Spec.CSI.VolumeHandle {
					before = union(before, id)
				}
			}
		}
	}
	return before
}

// diskWith returns the disk with the handle.
func (w *world) diskWith(s *State, handle string) diskID {
	for _, id := range s.disks {
		if w.disks[id].handle == handle {
			return id
		}
	}
	return 0
}
