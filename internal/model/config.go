package model

import (
	"net/http"

	"github.com/exeunt-io/exeunt/internal/model/server"
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
	// Users are what users can do, each once.
	Users []UserAction
	// Crashes, Losses, Errors and Hours are how often a program crashes or loses its lease, an
	// answer is lost, a call fails without effect, and an hour passes.
	Crashes, Losses, Errors, Hours int
	// Lies are how often an answer of the driver is not what it did. Switches are how often a
	// program stops and starts with the other gate HonorPVReclaimPolicy.
	Lies, Switches int
	// Interruptions are how often a program's pass may be interrupted by what another program,
	// a cache or a user does; -1 for any number. A crash is no interruption.
	Interruptions int
	// Stalls are how often a watch stalls for a while: passes begin although the cache does not
	// show what was written. -1: a pass may begin at any time, whatever the caches show.
	Stalls int
	// EveryVersion: caches see every version of an object; otherwise only the present one.
	// SkipVersions: they can also skip some.
	EveryVersion, SkipVersions bool
	// Eager: a pass that sends no call is taken before anything else of its program.
	Eager bool
	// SeeWithinPass: caches also change within a pass.
	SeeWithinPass bool
	// FormerLeaders: a leader that loses its lease ends its last pass beside the new one.
	FormerLeaders bool
}

// UserAction is what a user, or another program, does once.
type UserAction struct {
	// Says is the action in a line.
	Says string
	// Request returns the request for the objects; false while the action is impossible.
	Request func(server.Cluster) (server.Request, bool)
	// GivesUp: who does this wants no program to look after the disks any more.
	GivesUp bool
}

// initial returns the first state.
func (w *world) initial() *State {
	s := &State{
		instances: make([]instance, len(w.config.Programs)),
		crashes:   int8(w.config.Crashes), losses: int8(w.config.Losses), errors: int8(w.config.Errors), hours: int8(w.config.Hours),
		lies: int8(w.config.Lies), switches: int8(w.config.Switches),
		interruptions: int8(w.config.Interruptions), stalls: int8(w.config.Stalls),
	}
	for _, object := range w.config.Objects {
		s = w.put(s, w.slot(object.Key), w.intern(object))
	}
	for _, handle := range w.config.Disks {
		s.disks = append(s.disks, w.internDisk(disk{handle: handle}))
	}
	return s
}

// userSteps returns what users can still do.
func (w *world) userSteps(s *State) []Step {
	var all []Step
	for i, action := range w.config.Users {
		if s.done&(1<<i) != 0 {
			continue
		}
		request, possible := action.Request(w.cluster(s))
		if !possible {
			continue
		}
		after, result, err := w.serve(s, request)
		if err != nil || result.response.Code >= http.StatusBadRequest {
			continue
		}
		after = after.clone()
		after.done |= 1 << i
		w.giveUpDeleted(after)
		if action.GivesUp {
			for _, id := range s.disks {
				after.givenUp = union(after.givenUp, id)
			}
		}
		all = append(all, Step{After: after, Says: action.Says})
	}
	return all
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
