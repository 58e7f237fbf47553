package upstream_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// world is an API server, a storage system, and programs whose caches follow at once unless a
// test holds them back.
type world struct {
	t        *testing.T
	cluster  server.Cluster
	programs []*running
	// disks are the volumes of the storage system; a handle is "disk-" and the name.
	disks map[string]bool
	// created and deleted are the names and handles of all calls, in order.
	created, deleted []string
	// held reports whether a call has to wait for its answer.
	held func(process.Call) bool
	// fails returns an answer in place of that of the server or the driver.
	fails func(process.Call) *process.Answer
}

// running is a program in a world.
type running struct {
	build process.Build
	*process.Run
	// seen are the versions in the caches. Resources in blind are not shown to the program.
	seen  map[server.Key]int
	blind []string
	// busy are the loops with a pass that waits for a held answer.
	busy []int
}

func newWorld(t *testing.T, options process.Options, builds ...process.Build) *world {
	t.Helper()
	w := &world{t: t, disks: map[string]bool{}}
	for _, build := range builds {
		w.programs = append(w.programs, &running{build: build})
	}
	w.post("/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	for i, p := range w.programs {
		w.start(i, options)
		t.Cleanup(func() { p.End() })
	}
	return w
}

// start starts a program, again after a crash.
func (w *world) start(program int, options process.Options) {
	w.t.Helper()
	p := w.programs[program]
	if p.Run != nil {
		p.End()
	}
	p.seen, p.busy = map[server.Key]int{}, nil
	start := process.Start{Options: options}
	for _, object := range w.cluster.Objects() {
		if p.seen[object.Key] = object.Version; object.JSON != "" {
			start.Listed = append(start.Listed, object)
		}
	}
	run, err := process.NewRun(p.build, start)
	if err != nil {
		w.t.Fatal(err)
	}
	p.Run = run
}

func (w *world) next(p *running, input process.Input) {
	w.t.Helper()
	if err := p.Take(input); err != nil {
		w.t.Fatal(err)
	}
}

// settle runs all programs until time passing changes nothing any more.
func (w *world) settle() {
	w.t.Helper()
	for range 20 {
		w.work()
		before := w.cluster.Objects()
		for _, p := range w.programs {
			w.runKeys(p, true)
		}
		if slices.Equal(before, w.cluster.Objects()) {
			return
		}
	}
	w.t.Fatal("the programs never settle")
}

// work runs all programs until each queue has only keys that wait for a time.
func (w *world) work() {
	w.t.Helper()
	for range 100 {
		progress := false
		for _, p := range w.programs {
			progress = w.answer(p) || progress
			progress = w.see(p) || progress
			progress = w.runKeys(p, false) || progress
		}
		if !progress {
			return
		}
	}
	w.t.Fatal("the queues never become empty")
}

// see shows the program what changed.
func (w *world) see(p *running) (progress bool) {
	for _, object := range w.cluster.Objects() {
		if p.seen[object.Key] != object.Version && !slices.Contains(p.blind, object.Resource) {
			p.seen[object.Key] = object.Version
			w.next(p, process.Input{See: &object})
			progress = true
		}
	}
	return progress
}

// runKeys reconciles the keys that are due, or those that wait for a time.
func (w *world) runKeys(p *running, later bool) (progress bool) {
	for _, key := range slices.Clone(p.Local().Keys) {
		if key.Later != later || slices.Contains(p.busy, key.Loop) || !slices.Contains(p.Local().Keys, key) {
			continue
		}
		waited := len(p.Local().Calls)
		w.next(p, process.Input{Reconcile: &key})
		w.answer(p)
		if len(p.Local().Calls) > waited {
			p.busy = append(p.busy, key.Loop)
		}
		w.see(p)
		progress = true
	}
	return progress
}

// answer answers all calls that are not held.
func (w *world) answer(p *running) (progress bool) {
	for {
		calls := p.Local().Calls
		number := slices.IndexFunc(calls, func(call process.Call) bool { return w.held == nil || !w.held(call) })
		if number < 0 {
			return progress
		}
		answer := w.serve(calls[number])
		w.next(p, process.Input{Answer: &process.Answered{Call: number, Answer: answer}})
		if progress = true; len(p.Local().Calls) == 0 {
			p.busy = nil
		}
	}
}

func (w *world) serve(call process.Call) process.Answer {
	if w.fails != nil {
		if answer := w.fails(call); answer != nil {
			return *answer
		}
	}
	return w.effect(call)
}

// effect carries out a call.
func (w *world) effect(call process.Call) process.Answer {
	switch {
	case call.Create != "":
		w.created = append(w.created, call.Create)
		w.disks["disk-"+call.Create] = true
		return process.Answer{Handle: "disk-" + call.Create}
	case call.Delete != "":
		w.deleted = append(w.deleted, call.Delete)
		delete(w.disks, call.Delete)
		return process.Answer{Code: codes.OK}
	}
	var response server.Response
	w.cluster, response = w.cluster.Serve(call.Request)
	return process.Answer{Response: response}
}

// send is a request of a user.
func (w *world) send(method, path, contentType, body string) {
	w.t.Helper()
	var response server.Response
	w.cluster, response = w.cluster.Serve(server.Request{Method: method, Path: path, ContentType: contentType, Body: body})
	if response.Code >= http.StatusBadRequest {
		w.t.Fatalf("%s %s: %d %s", method, path, response.Code, response.Body)
	}
}

func (w *world) post(path, body string) {
	w.t.Helper()
	w.send(http.MethodPost, path, "", body)
}

func (w *world) patch(path, body string) {
	w.t.Helper()
	w.send(http.MethodPatch, path, "application/merge-patch+json", body)
}

func (w *world) delete(path string) {
	w.t.Helper()
	w.send(http.MethodDelete, path, "", "")
}

// read returns the object at the path, nil if there is none.
func (w *world) read(path string) map[string]any {
	w.t.Helper()
	_, response := w.cluster.Serve(server.Request{Method: http.MethodGet, Path: path})
	if response.Code == http.StatusNotFound {
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(response.Body), &object); err != nil {
		w.t.Fatal(err)
	}
	return object
}

// at returns a field of the object at the path as text, "" for none.
func (w *world) at(path, field string) string {
	w.t.Helper()
	var value any = w.read(path)
	for _, name := range strings.Split(field, "/") {
		inner, _ := value.(map[string]any)
		value = inner[name]
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
