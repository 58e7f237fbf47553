package model

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// answers returns the answers that the calls of a program can get.
func (w *world) answers(s *State, i int) ([]Step, error) {
	if s.instances[i].local == process.Off {
		return nil, nil
	}
	return w.answersTo(s, i, newCalls(nil, w.local(s, i).Calls), false)
}

// formerAnswers returns the late answers to the calls of a former leader.
func (w *world) formerAnswers(s *State, i int) ([]Step, error) {
	former := s.instances[i].former
	if former == process.Off {
		return nil, nil
	}
	return w.answersTo(s, i, newCalls(nil, w.machines[i].Local(former).Calls), true)
}

func (w *world) answersTo(s *State, i int, calls []numbered, former bool) ([]Step, error) {
	var all []Step
	for _, call := range calls {
		replies, err := w.replies(s, i, former, call.Call)
		if err != nil {
			return nil, err
		}
		for _, r := range replies {
			after, stuck, err := w.move(
				w.recordRead(r.state, i, former, call.Call), i, former,
				process.Input{Answer: &process.Answered{Call: call.number, Answer: r.answer}}, r.text(call.number),
			)
			if err != nil {
				return nil, err
			}
			who := w.config.Programs[i].Name
			if former {
				who, stuck = "the former "+who, "" // it may end at any time
			}
			all = append(all, Step{
				After: after, Says: who + ": " + call.String() + r.says, Free: r.free, Effect: r.effect, Plain: r.plain,
				Program: i, Former: former, Stuck: stuck,
			})
		}
	}
	return all, nil
}

// recordRead records what a program reads live: what it does next rests on it, and on what the
// pass has read of other objects. Where nothing can happen in between, that is the state before. A
// read of a secret takes time: what was read before it is old then.
func (w *world) recordRead(s *State, i int, former bool, call process.Call) *State {
	if call.Request.Method != http.MethodGet {
		return s
	}
	after := s.clone()
	_, here := after.instances[i].process(former)
	switch {
	case s.interruptions == 0 && !w.config.FormerLeaders && len(here.read) == 0:
	case strings.Contains(call.Request.Path, "/secrets/"):
		here.read = nil
	case len(here.read) == 0:
		here.read = s.objects
	default:
		here.read = w.readAgain(here.read, s.objects, call.Request.Path)
	}
	return after
}

// readAgain returns what a pass has read live once it also reads the path.
func (w *world) readAgain(read, now []objectID, path string) []objectID {
	both := slices.Clone(now)
	for slot := range both {
		if key := w.slots[slot]; slot < len(read) && !isAt(key, path) {
			both[slot] = read[slot]
		}
	}
	return both
}

// isAt reports whether a read of the path returns the object with the key.
func isAt(key server.Key, path string) bool {
	if key.Namespace != "" && strings.Contains(path, "/namespaces/") &&
		!strings.Contains(path, "/namespaces/"+key.Namespace+"/") {
		return false
	}
	return strings.HasSuffix(path, "/"+key.Resource) || strings.HasSuffix(path, "/"+key.Resource+"/"+key.Name)
}

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
	return fmt.Sprintf(
		"answer %d %v %d %d %s %v %s", number, r.answer.Lost, r.answer.Response.Code, r.answer.Code, r.answer.Handle,
		r.answer.Small, r.answer.Response.Body,
	)
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
		right = w.lateReply(s, right, call)
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
	r := reply{
		state: after, answer: process.Answer{Response: result.response}, free: true,
		says: fmt.Sprintf(" -> %d", result.response.Code),
	}
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
