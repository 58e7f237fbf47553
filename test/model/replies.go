package model

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// reply is an answer to a call.
type reply struct {
	state  *State
	answer process.Answer
	says   string
	free   bool
	effect *check.Step
	// plain is the state without what the admission policy added to the write, nil for the
	// same.
	plain *State
}

func (r reply) text(number int) string {
	return fmt.Sprintf("answer %d %v %d %d %s %v %s", number, r.answer.Lost, r.answer.Response.Code, r.answer.Code, r.answer.Handle, r.answer.Small, r.answer.Response.Body)
}

// replies returns the right answer to a call, and the wrong ones that are still to come.
func (w *world) replies(s *State, i int, former bool, call process.Call) ([]reply, error) {
	unclaimed := s
	if !former {
		s = w.claimed(s, i, call)
	}
	right, err := w.reply(s, i, call)
	if err != nil {
		return nil, err
	}
	if former {
		right = w.late(s, right, call)
	}
	all := []reply{right}
	if changes := right.effect != nil; changes && s.losses > 0 {
		lost := right
		lost.state = lost.state.clone()
		lost.state.losses--
		lost.answer, lost.free, lost.says = process.Answer{Lost: true}, false, right.says+", and the answer is lost"
		all = append(all, lost)
	}
	if delayed, possible := w.delay(s, i, call); possible && !former {
		all = append(all, delayed)
	}
	if s.wrongAnswers > 0 && call.Request.Method == "" {
		all = append(all, w.wrongAnswers(s, right, call)...)
	}
	webhooks, err := w.webhooks(s, right, call)
	return slices.Concat(all, webhooks, w.failures(s, unclaimed, call)), err
}

// failures returns the answers to a call that fails without effect. Unclaimed is the state in which a claim gets no disk.
func (w *world) failures(s, unclaimed *State, call process.Call) []reply {
	if s.errors == 0 {
		return nil
	}
	var all []reply
	fails := func(s *State, code codes.Code, says string) {
		after := s.clone()
		after.errors--
		all = append(all, reply{state: after, says: says, answer: process.Answer{Code: code, Response: failure}})
	}
	fails(s, codes.Unavailable, " fails without effect")
	if call.Create != "" {
		for _, code := range w.refusals() {
			fails(unclaimed, code, " fails with "+code.String())
		}
	}
	return all
}

// refusals are the codes of a driver that refuses to create a volume.
func (w *world) refusals() []codes.Code {
	if w.config.Codes == nil {
		return []codes.Code{codes.InvalidArgument}
	}
	return w.config.Codes
}

// failure is the answer of an API server that has a problem of its own.
var failure = server.Response{Code: http.StatusInternalServerError, Body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`}

// claimed returns the state in which no user keeps the disk of a CreateVolume for a waiting claim: its
// volume was deleted before the claim was bound, and the claim gets the disk again, even if the first
// call for it fails.
func (w *world) claimed(s *State, i int, call process.Call) *State {
	kept := slices.IndexFunc(s.kept, func(id diskID) bool { return w.disks[id].name == call.Create })
	if call.Create == "" || kept < 0 {
		return s
	}
	for _, objects := range [][]objectID{s.objects, s.instances[i].present.sent} {
		then := *s
		then.objects = objects
		for _, claim := range w.snapshot(&then).Claims {
			if strings.HasSuffix(call.Create, string(claim.UID)) && storage.NeverBound(claim) {
				after := s.clone()
				after.kept = slices.Delete(slices.Clone(s.kept), kept, kept+1)
				return after
			}
		}
	}
	return s
}

func (w *world) reply(s *State, i int, call process.Call) (reply, error) {
	program := w.config.Programs[i]
	effect := check.Step{Actor: program.Actor, Honor: w.honors(s, i), Journaled: program.Journaled}
	if call.Request.Method == "" {
		after, handle, changed := w.call(s, call)
		r := reply{state: after, answer: process.Answer{Handle: handle}, free: true, says: " succeeds"}
		effect.Kind, effect.Name = check.CreateVolume, call.Create
		if call.Delete != "" {
			effect.Kind, effect.Handle = check.DeleteVolume, call.Delete
		}
		r.effect = &effect
		if !changed {
			r.says = " finds nothing to do"
		}
		return r, nil
	}
	after, result, err := w.serve(s, call.Request)
	if err != nil {
		return reply{}, err
	}
	r := reply{state: after, answer: process.Answer{Response: result.response}, free: true, says: fmt.Sprintf(" -> %d", result.response.Code)}
	question := strings.HasSuffix(call.Request.Path, "accessreviews") // it asks for rights, and writes nothing
	if call.Request.Method != http.MethodGet && !question && result.response.Code < http.StatusBadRequest {
		// A journal entry that is written again before its removal is written leaves its Lease as
		// it is.
		ofJournal := strings.Contains(call.Request.Path, "/leases")
		effect.Kind, effect.Unchanged = check.Write, !ofJournal && after == s
		r.effect = &effect
	}
	if result.plain != 0 {
		r.plain = after.clone()
		r.plain.objects[result.slot] = result.plain
	}
	return r, nil
}
