package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// skew is one etcd with two API servers, and many clients of both. A third one, of ours, observes.
type skew struct {
	observer kind
	servers  []kind
	// refusals is how often a controller may get 422 for one finalizer: at a stock API server once, because it then
	// reads there.
	refusals int
	seed     uint64
}

// Users delete at a random server with a random grace period; three controllers per object remove their finalizers by
// PUT and PATCH at a random server. No object is left, no deadline moves later, and etcd never has a grace period.
func TestSkewLeavesNoObject(t *testing.T) {
	for name, tc := range map[string]struct {
		second   func() (*server, error)
		refusals int
	}{"stock": {shared.stock, 1}, "gate off": {shared.gateOff, 1}, "two of ours": {shared.uncached, 0}} {
		t.Run(name, func(t *testing.T) {
			k := newKind(t, ours(t), objectName(name)+".skew.example.com")
			s := skew{k, []kind{k, k.at(mustServe(t, tc.second)).await()}, tc.refusals, newSeed(t)}
			s.run("a", 40)
		})
	}
}

// The same while one of two servers is killed, and a server of the other kind starts in its place, four times.
func TestSkewWhileServersAreKilledAndReplaced(t *testing.T) {
	k := newKind(t, ours(t), "replaced.skew.example.com")
	places := []*place{newPlace(t, "place-0", true), newPlace(t, "place-1", false)}
	s := skew{k, []kind{k.at(places[0].client).await(), k.at(places[1].client).await()}, 20, newSeed(t)}
	replaced := make(chan struct{})
	go func() {
		defer close(replaced)
		for i := range 4 {
			places[i%2].replace(t)
		}
	}()
	for wave, done := 0, false; !done; wave++ {
		s.run(fmt.Sprintf("wave-%d", wave), 10)
		select {
		case <-replaced:
			done = true
		default:
		}
	}
}

// place is where one API server runs, ours or a stock one, behind a load balancer.
type place struct {
	name    string
	ours    bool
	front   *front
	client  *server
	process *process
}

func newPlace(t *testing.T, name string, ours bool) *place {
	t.Helper()
	p := &place{name: name, ours: !ours}
	p.front, p.client = newFront(t, nil)
	p.replace(t)
	t.Cleanup(func() { p.process.end(syscall.SIGKILL) })
	return p
}

// replace kills the server, and starts one of the other kind.
func (p *place) replace(t *testing.T) {
	if p.process != nil {
		p.process.end(syscall.SIGKILL)
		p.front.use(t, nil)
	}
	var flags []string
	if p.ours = !p.ours; p.ours {
		flags = []string{"--kube-apiserver=" + program()}
	}
	s, process, err := shared.run(p.name, flags...)
	if err != nil {
		t.Error(err)
		return
	}
	p.process = process
	p.front.use(t, s)
}

func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}

// run lets users delete objects and controllers remove their finalizers, until no object is left.
func (s skew) run(prefix string, objects int) {
	k := s.observer
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	stored := k.etcd.Watch(ctx, "/registry/"+k.group+"/", clientv3.WithPrefix())
	var read, clients sync.WaitGroup
	read.Go(func() { expectNoGraceStored(k.t, stored) })
	version := k.list().GetResourceVersion()
	for i := range objects {
		name := fmt.Sprintf("%s-%d", prefix, i)
		k.create(name, "example.com/0", "example.com/1", "example.com/2")
		clients.Go(func() { s.deleteOften(name, rand.New(rand.NewPCG(s.seed, uint64(i)))) })
		for controller := range 3 {
			clients.Go(func() {
				s.removeFinalizer(name, fmt.Sprintf("example.com/%d", controller),
					rand.New(rand.NewPCG(s.seed, uint64(1000+10*i+controller))))
			})
		}
	}
	clients.Wait()
	k.noneLeft()
	cancel()
	read.Wait()
	expectHistory(k.t, k.events(version), objects)
}

// list returns all objects of the kind.
func (k kind) list() *unstructured.UnstructuredList {
	k.t.Helper()
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON([]byte(k.s.do(k.t, http.MethodGet, k.path(""), asJSON, nil).text)); err != nil {
		k.t.Error(err)
	}
	return list
}

// deleteOften deletes an object a few times, until a server has answered. After 503 the outcome is unknown.
func (s skew) deleteOften(name string, random *rand.Rand) {
	graces := []any{"", 0, 1, 30, 60, 300, 600}
	for left := 1 + random.IntN(6); left > 0; {
		k := s.servers[random.IntN(2)]
		got := k.delete(name, graces[random.IntN(len(graces))], nil)
		switch got.code {
		case http.StatusOK:
			left--
		case http.StatusServiceUnavailable:
		case http.StatusNotFound:
			return
		default:
			k.t.Errorf("delete %s: %d %s", name, got.code, got.text)
			return
		}
	}
}

// removeFinalizer removes a finalizer once the object is being deleted. After a refusal it reads the object at the
// server that refused.
func (s skew) removeFinalizer(name, finalizer string, random *rand.Rand) {
	reader, writer := s.servers[random.IntN(2)], s.servers[random.IntN(2)]
	refusals := 0
	for refusals <= s.refusals {
		read := reader.get(name)
		if read.code == http.StatusNotFound {
			return // another controller removed the last one
		}
		if read.code != http.StatusOK || read.body.GetDeletionTimestamp() == nil {
			continue
		}
		got := writer.without(name, read.body, finalizer, random.IntN(2) == 0)
		switch got.code {
		case http.StatusOK, http.StatusNotFound:
			return
		case http.StatusConflict, http.StatusServiceUnavailable:
		case http.StatusUnprocessableEntity:
			refusals++
			reader = writer
		default:
			writer.t.Errorf("%s: %d %s", name, got.code, got.text)
			return
		}
	}
	writer.t.Errorf("%s keeps %s: refused %d times", name, finalizer, refusals)
}

// without removes a finalizer of an object that was read before, by PUT or by PATCH.
func (k kind) without(name string, object *unstructured.Unstructured, finalizer string, put bool) answer {
	kept := slices.DeleteFunc(object.GetFinalizers(), func(other string) bool { return other == finalizer })
	if put {
		object.SetFinalizers(kept)
		return k.put(name, object)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": object.GetResourceVersion(),
		"finalizers": kept}})
	if err != nil {
		k.t.Error(err)
	}
	return k.patch(name, string(patch))
}

// expectNoGraceStored reads all values until the channel is closed.
func expectNoGraceStored(t *testing.T, stored clientv3.WatchChan) {
	for response := range stored {
		for _, event := range response.Events {
			if text := string(event.Kv.Value); event.Type == clientv3.EventTypePut && strings.Contains(text, window) &&
				!strings.Contains(text, window+"0,") {
				t.Errorf("in etcd: %s", text)
			}
		}
	}
}

const window = `"deletionGracePeriodSeconds":`

// events returns the events of the kind since a version.
func (k kind) events(version string) []*unstructured.Unstructured {
	k.t.Helper()
	got := k.s.do(k.t, http.MethodGet, k.path("")+"?watch=true&timeoutSeconds=2&resourceVersion="+version, asJSON, nil)
	var found []*unstructured.Unstructured
	for line := range strings.Lines(got.text) {
		event := &unstructured.Unstructured{}
		if err := event.UnmarshalJSON([]byte(strings.Replace(line, `{"type"`, `{"kind":"Event","type"`, 1))); err != nil {
			k.t.Fatalf("%v in %s", err, line)
		}
		found = append(found, event)
	}
	return found
}

// object returns the object of an event.
func object(event *unstructured.Unstructured) *unstructured.Unstructured {
	content, _, _ := unstructured.NestedMap(event.Object, "object")
	return &unstructured.Unstructured{Object: content}
}

// expectHistory wants that no deadline moves later, no deletion becomes plain, and one DELETED of each object.
func expectHistory(t *testing.T, events []*unstructured.Unstructured, objects int) {
	t.Helper()
	last, deleted := map[string]deletion{}, 0
	for _, event := range events {
		name, found := object(event).GetName(), deletionOf(object(event))
		before := last[name]
		last[name] = found
		if event.Object["type"] == "DELETED" {
			deleted++
		}
		later := found.kind == deadline.Graceful && found.end.After(before.end)
		if before.kind == deadline.Graceful && (found.kind < deadline.Graceful || later) ||
			before.kind == deadline.Forced && found.kind != deadline.Forced ||
			before.kind == deadline.Unspecified && found.kind == deadline.Graceful {
			t.Errorf("%s: %+v after %+v", name, found, before)
		}
	}
	if deleted != objects || len(last) != objects {
		t.Errorf("%d DELETED events of %d objects, want %d", deleted, len(last), objects)
	}
}
