package model

import (
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/test/model/process"
)

// Codes that a driver answers although it did what it was to do. By the first ones a program can
// tell that the outcome is unknown; by the others it cannot.
var (
	doubtfulCreations = []codes.Code{codes.Internal, codes.AlreadyExists, codes.DeadlineExceeded}
	deniedCreations   = []codes.Code{codes.InvalidArgument, codes.NotFound}
	failedDeletions   = []codes.Code{codes.Internal, codes.NotFound, codes.InvalidArgument}
)

// wrongAnswers returns the answers to a call that are not what the driver did; right is the right answer.
//
// No program can know the disk of a CreateVolume that is denied, nor that of a DeleteVolume that
// succeeds without effect: these disks are given up. Everything else must end as without the wrong answer.
func (w *world) wrongAnswers(s *State, right reply, call process.Call) []reply {
	var all []reply
	answered := func(r reply, code codes.Code, handle, says string) {
		r.state = r.state.clone()
		r.state.wrongAnswers--
		r.answer, r.free, r.says = process.Answer{Code: code, Handle: handle}, false, says
		all = append(all, r)
	}
	if right.answer.Code == codes.OK && call.Create != "" {
		answered(right, codes.OK, right.answer.Handle, " succeeds, and answers that the volume is too small")
		all[0].answer.Small = true
	}
	changed := !slices.Equal(right.state.disks, s.disks)
	ineffective := right
	ineffective.state = s
	switch {
	case !changed:
	case call.Create != "":
		for _, code := range doubtfulCreations {
			answered(right, code, "", " succeeds, and answers "+code.String())
		}
		denied := right
		denied.state = w.givingUp(right.state, right.answer.Handle)
		for _, code := range deniedCreations {
			answered(denied, code, "", " succeeds, and answers "+code.String())
		}
		ineffective.state = w.givingUpDisk(s, disk{name: call.Create, handle: right.answer.Handle})
		answered(ineffective, codes.OK, right.answer.Handle, " does nothing, and answers OK")
	default:
		for _, code := range failedDeletions {
			answered(right, code, "", " succeeds, and answers "+code.String())
		}
		ineffective.state = w.givingUp(s, call.Delete)
		answered(ineffective, codes.OK, "", " does nothing, and answers OK")
	}
	return all
}

// givingUp returns the state in which the disk with the handle is given up.
func (w *world) givingUp(s *State, handle string) *State {
	return w.givingUpDisk(s, w.disks[w.diskWith(s, handle)])
}

func (w *world) givingUpDisk(s *State, d disk) *State {
	after := s.clone()
	after.givenUp = union(s.givenUp, w.internDisk(d))
	return after
}
