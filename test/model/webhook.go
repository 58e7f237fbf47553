package model

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// webhooks returns the answers to a write that an admission webhook denies or undoes; right is the answer without one.
func (w *world) webhooks(s *State, right reply, call process.Call) ([]reply, error) {
	all := w.denied(s, call)
	undone, possible, err := w.undone(s, right, call)
	if possible {
		all = append(all, undone)
	}
	return all, err
}

// denied returns the answers of a webhook that denies the write, with codes that also the API server gives: for an object
// that is gone, has changed, or exists.
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
	return reply{state: after, answer: process.Answer{Response: present.response}, says: " succeeds, and a webhook undoes the change"}, true, nil
}
