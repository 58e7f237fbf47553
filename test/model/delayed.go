package model

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// delayedWrite is a write whose sender got no answer, and which the API server may execute later.
type delayedWrite struct {
	// program is the number of the program plus one, 0 for no write.
	program int8
	// request is the number of the request.
	request uint16
}

// delay returns the answer to a write that is not executed yet; false if the write cannot be delayed.
func (w *world) delay(s *State, i int, call process.Call) (reply, bool) {
	method := call.Request.Method
	number := w.numberOf(call.Request)
	if s.delays == 0 || s.delayed.program != 0 || method == "" || method == http.MethodGet || number > 1<<16-1 || !w.mayDelay(call.Request) {
		return reply{}, false
	}
	after := s.clone()
	after.delays--
	after.delayed = delayedWrite{program: int8(i + 1), request: uint16(number)}
	return reply{state: after, answer: process.Answer{Lost: true}, says: " gets no answer, and may take effect later"}, true
}

// mayDelay reports whether the configuration delays writes of the resource.
func (w *world) mayDelay(request server.Request) bool {
	return len(w.config.Delaying) == 0 || slices.ContainsFunc(w.config.Delaying, func(resource string) bool { return strings.Contains(request.Path, "/"+resource) })
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
	name := fmt.Sprintf("the delayed %s %s of %s", request.Method, request.Path, w.config.Programs[s.delayed.program-1].Name)
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
