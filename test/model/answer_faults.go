package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// failures returns the answers to a call that fails without effect. Unclaimed is the state in which a claim gets
// no disk.
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
var failure = server.Response{
	Code: http.StatusInternalServerError,
	Body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`,
}

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

// webhooks returns the answers to a write that an admission webhook denies or undoes; right is the answer without one.
func (w *world) webhooks(s *State, right reply, call process.Call) ([]reply, error) {
	all := w.denied(s, call)
	undone, possible, err := w.undone(s, right, call)
	if possible {
		all = append(all, undone)
	}
	return all, err
}

// denied returns the answers of a webhook that denies the write, with codes that also the API server gives: for an
// object that is gone, has changed, or exists.
func (w *world) denied(s *State, call process.Call) []reply {
	if s.denials == 0 || call.Request.Method == "" {
		return nil
	}
	var all []reply
	for _, denial := range server.Denials(call.Request) {
		after := s.clone()
		after.denials--
		says := fmt.Sprintf(" is denied by a webhook with %d %s", denial.Code, server.ReasonOf(denial))
		all = append(all, reply{state: after, answer: process.Answer{Response: denial}, says: says})
	}
	return all
}

// undone returns the answer to a write that succeeds, and whose change a mutating webhook takes back; false if nothing
// would be changed.
func (w *world) undone(s *State, right reply, call process.Call) (reply, bool, error) {
	method := call.Request.Method
	changes := right.effect != nil && right.effect.Kind == check.Write && right.state != s
	if s.undos == 0 || !changes || method != http.MethodPatch && method != http.MethodPut {
		return reply{}, false, nil
	}
	path, _ := strings.CutSuffix(call.Request.Path, "/status")
	_, present, err := w.serve(s, server.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return reply{}, false, err
	}
	after := s.clone()
	after.undos--
	return reply{
		state: after, answer: process.Answer{Response: present.response},
		says: " succeeds, and a webhook undoes the change",
	}, true, nil
}

// lateReply returns the answer to the call of a former leader, which may have waited for so long that the disk of
// the call was deleted. Neither CSI nor the API server has fencing: what no program can know then is
// given up ("Known and accepted" in docs/architecture/provisioning.md).
func (w *world) lateReply(s *State, right reply, call process.Call) reply {
	if right.state == s {
		return right
	}
	if call.Create != "" {
		if w.isDeleted(s, call.Create) && !w.hasEntry(s, call.Create) {
			right.state = w.givingUp(right.state, right.answer.Handle)
		}
		return right
	}
	volume := v1.PersistentVolume{}
	if call.Request.Method != http.MethodPost || call.Request.Path != volumesPath ||
		json.Unmarshal([]byte(call.Request.Body), &volume) != nil {
		return right
	}
	if handle := check.HandleOf(&volume); w.diskWith(s, handle) == 0 && w.isDeleted(s, volume.Name) {
		right.state = w.givingUpAll(right.state, volume.Name)
	}
	return right
}

// delay returns the answer to a write that is not executed yet; false if the write cannot be delayed.
func (w *world) delay(s *State, i int, call process.Call) (reply, bool) {
	method := call.Request.Method
	number := w.numberOf(call.Request)
	if s.delays == 0 || s.delayed.program != 0 || method == "" || method == http.MethodGet || number > 1<<16-1 ||
		!w.mayDelay(call.Request) {
		return reply{}, false
	}
	after := s.clone()
	after.delays--
	after.delayed = delayedWrite{program: int8(i + 1), request: uint16(number)}
	return reply{
		state: after, answer: process.Answer{Lost: true}, says: " gets no answer, and may take effect later",
	}, true
}

// mayDelay reports whether the configuration delays writes of the resource.
func (w *world) mayDelay(request server.Request) bool {
	return len(w.config.Delaying) == 0 ||
		slices.ContainsFunc(
			w.config.Delaying, func(resource string) bool { return strings.Contains(request.Path, "/"+resource) },
		)
}

// delayedSteps returns what becomes of a delayed write: the API server executes it, or gives it up.
func (w *world) delayedSteps(s *State) ([]Step, error) {
	if s.delayed.program == 0 {
		return nil, nil
	}
	given := s.clone()
	given.delayed = delayedWrite{}
	request := w.requestOf[s.delayed.request].Request
	after, result, err := w.serve(given, request)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf(
		"the delayed %s %s of %s", request.Method, request.Path, w.config.Programs[s.delayed.program-1].Name,
	)
	steps := []Step{{After: given, Says: name + " is given up", Free: true}}
	if after != given {
		steps = append(steps, Step{After: after, Says: fmt.Sprintf("%s takes effect -> %d", name, result.response.Code)})
	}
	return steps, nil
}

// minutePassed ends the delayed write of a program, since the API server ends each request after a minute.
func (s *State) minutePassed(program int) {
	if int(s.delayed.program) == program+1 {
		s.delayed = delayedWrite{}
	}
}
