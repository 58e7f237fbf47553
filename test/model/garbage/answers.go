package garbage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describe names a call for stories.
func (w *world) describe(c Call) string {
	text := c.Verb + " " + w.config.Kinds[c.Kind].Resource
	if c.Name != "" {
		text += "/" + c.Name
	}
	if 0 < c.Limit && c.Limit < wholeList {
		text += ", first page"
	}
	return strings.TrimSpace(text + " " + c.Body)
}

func (w *world) allAnswers(s *State, l *Local) ([]Step, error) { return w.answers(s, l, false) }

// answers returns the answers to the calls of the collector, or of its worker only.
func (w *world) answers(s *State, l *Local, worker bool) ([]Step, error) {
	var all []Step
	for i, call := range l.Calls {
		if worker && call.Pass != Work {
			continue
		}
		found, err := w.answersTo(s, l, i)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// answersTo returns the answers to one call.
func (w *world) answersTo(s *State, l *Local, number int) ([]Step, error) {
	call := l.Calls[number]
	id := fmt.Sprint(call)
	if at := slices.IndexFunc(s.served, func(a Served) bool { return a.call == id }); at >= 0 {
		after := s.clone()
		answer := after.served[at].answer
		after.served = slices.Delete(after.served, at, at+1)
		return w.answered(after, call, number, answer, Step{Says: "the answer arrives: " + w.describe(call), Free: true})
	}
	after := s.clone()
	answer := w.serve(after, call, l.Ages[number])
	all, err := w.answered(after, call, number, answer, Step{
		Says: fmt.Sprintf("%s: %s: %s", call.Pass, w.describe(call), w.result(answer)), Free: true,
	})
	if err != nil {
		return nil, err
	}
	for _, fault := range w.faultsOf(s, call, number) {
		found, err := fault()
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// answered gives the collector an answer.
func (w *world) answered(after *State, call Call, number int, answer Answer, step Step) ([]Step, error) {
	broken := after.broken
	next, err := w.next(after, Input{Answer: &answer, Call: number})
	if err != nil {
		return nil, err
	}
	if call.Pass == Work {
		next.paused = false
	}
	next.broken = broken
	step.After = next
	return []Step{step}, nil
}

// faultsOf returns what may go wrong with a call.
func (w *world) faultsOf(s *State, call Call, number int) []func() ([]Step, error) {
	fault := func(left int8, says string, change func(after *State) Answer) func() ([]Step, error) {
		return func() ([]Step, error) {
			if left == 0 {
				return nil, nil
			}
			after := s.clone()
			answer := change(after)
			return w.answered(after, call, number, answer, Step{Says: says + w.describe(call)})
		}
	}
	all := []func() ([]Step, error){
		fault(s.faults.Failed, "the API server fails: ", func(after *State) Answer {
			after.faults.Failed--
			return Answer{Outcome: broken}
		}),
		fault(s.faults.Paths, "the path is not served: ", func(after *State) Answer {
			after.faults.Paths--
			return Answer{Outcome: pathNotFound}
		}),
	}
	all = append(all, w.webhooks(s, call, func(says string, answer Answer) func() ([]Step, error) {
		return fault(s.faults.Denied, says, func(after *State) Answer {
			after.faults.Denied--
			return answer
		})
	})...)
	if call.writes() {
		return append(all, fault(s.faults.Lost, "the answer is lost: ", func(after *State) Answer {
			after.faults.Lost--
			w.serve(after, call, w.machine.states[s.collector].Ages[number])
			return Answer{Outcome: broken}
		}))
	}
	return append(all, func() ([]Step, error) { return w.delayed(s, call), nil })
}

// webhooks returns the faults of admission webhooks that deny or undo a write.
func (w *world) webhooks(s *State, call Call,
	fault func(says string, answer Answer) func() ([]Step, error)) (all []func() ([]Step, error)) {
	if !call.writes() {
		return nil
	}
	for _, denial := range denials {
		all = append(all, fault(denial.says, Answer{Outcome: denial.outcome}))
	}
	if kept := w.undone(s, call); kept != nil {
		all = append(all, fault("a webhook undoes: ", Answer{Object: kept}))
	}
	return all
}

// undone returns the object with which a patch is answered whose change a mutating webhook takes back, nil if the call
// is no patch or fails: no version is stored, and no event follows.
func (w *world) undone(s *State, call Call) *Object {
	if call.Verb != "patch" {
		return nil
	}
	o, _ := w.at(s, call.Kind, call.Namespace, call.Name)
	if o == nil {
		return nil
	}
	if _, err := w.patched(o, call.Body); err != nil {
		return nil
	}
	return o
}

// delayed serves a read whose answer arrives later.
func (w *world) delayed(s *State, call Call) []Step {
	if s.faults.Delayed == 0 {
		return nil
	}
	after := s.clone()
	after.faults.Delayed--
	after.served = append(after.served, Served{fmt.Sprint(call), w.serve(after, call, 0)})
	return []Step{{Says: "served, but the answer is under way: " + w.describe(call), After: after}}
}

// denials are the answers of an admission webhook to a write, whose object lives.
var denials = []struct {
	outcome outcome
	says    string
}{
	{notFound, "a webhook denies with 404: "}, {conflicted, "a webhook denies with 409: "},
	{invalid, "a webhook denies with 422: "}, {forbidden, "a webhook denies with 403: "},
	{expired, "a webhook denies with 410: "},
}

func (w *world) result(a Answer) string {
	switch a.Outcome {
	case succeeded:
	case notFound:
		return "not found"
	case conflicted, invalid:
		return "conflict"
	default:
		return "failed"
	}
	names := make([]string, 0, len(a.Objects))
	for _, o := range a.Objects {
		names = append(names, w.name(o))
	}
	if len(names) > 0 || a.Version > 0 {
		return fmt.Sprintf("%d objects at %d: %s", len(names), a.Version, strings.Join(names, "; "))
	}
	return w.name(a.Object)
}

// serve carries out a call, judges a write, and returns the answer.
func (w *world) serve(s *State, call Call, age int) Answer {
	if s.away || s.restored && w.config.Elected && call.writes() {
		return Answer{Outcome: broken}
	}
	if call.Verb == "list" {
		return w.serveList(s, call)
	}
	o, _ := w.at(s, call.Kind, call.Namespace, call.Name)
	if o == nil {
		return Answer{Outcome: notFound}
	}
	switch call.Verb {
	case "get":
		if call.Pass == Cycles {
			w.bearWitness(s, o.Slot)
		}
		return Answer{Object: o}
	case "delete":
		return w.serveDelete(s, call, o, age)
	}
	return w.servePatch(s, call, o, age)
}

func (w *world) serveDelete(s *State, call Call, o *Object, age int) Answer {
	var options metav1.DeleteOptions
	if err := json.Unmarshal([]byte(call.Body), &options); err != nil {
		return Answer{Outcome: broken}
	}
	before := s.clone()
	left, err := w.delete(s, o, &options)
	if apierrors.IsConflict(err) {
		return Answer{Outcome: conflicted}
	}
	s.broken = append(s.broken, w.judgeDelete(before, o, s.objects[o.Slot], age)...)
	if left == nil {
		return Answer{Gone: string(w.uidAt(o.Slot, o.Incarnation))}
	}
	return Answer{Object: left}
}

func (w *world) servePatch(s *State, call Call, o *Object, age int) Answer {
	changed, err := w.patched(o, call.Body)
	switch {
	case errors.Is(err, errForeign):
		s.broken = append(s.broken, brokenRule("ForeignChange", w.name(o)+" is changed: "+call.Body))
		return Answer{Outcome: broken}
	case err != nil:
		return Answer{Outcome: invalid}
	}
	before := s.clone()
	answer := Answer{Object: w.update(s, changed)}
	s.broken = append(s.broken, w.judgePatch(before, o, changed, age)...)
	return answer
}

// wholeList is a size of pages that has room for all objects. In smaller pages, one object stands for
// as many as the page has.
const wholeList = 100

func (w *world) serveList(s *State, call Call) Answer {
	if s.failing[call.Kind] {
		return Answer{Outcome: broken}
	}
	objects := w.listed(s, call.Kind, call.Namespace)
	a := Answer{Objects: objects, Version: s.counters[call.Kind]}
	if 0 < call.Limit && call.Limit < wholeList && len(objects) > 1 {
		a.Objects, a.Continue = objects[:1], true
	}
	return a
}

// lateWrites returns the writes of a former leader that may arrive.
func (w *world) lateWrites(s *State) []Step {
	var all []Step
	for i, write := range s.late {
		after := s.clone()
		after.late = slices.Delete(after.late, i, i+1)
		w.serve(after, write.Call, write.Age)
		all = append(all, Step{Says: "a late write arrives: " + w.describe(write.Call), After: after})
	}
	return all
}
