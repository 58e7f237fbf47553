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
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// skew is one etcd with two API servers, ours and a stock one, and many clients of both.
type skew struct {
	kinds []kind
	seed  uint64
}

// objects is how many objects the clients delete.
const objects = 40

// Users delete at a random server with a random grace period; three controllers per object remove their finalizers by
// PUT and PATCH at a random server. No object is left, no deadline moves later, and etcd never has a grace period.
func TestSkewLeavesNoObject(t *testing.T) {
	k := newKind(t, ours(t), "skew.example.com")
	s := skew{[]kind{k, k.at(mustServe(t, shared.stock)).await()}, uint64(time.Now().UnixNano())}
	t.Logf("seed %d", s.seed)
	ctx, cancel := context.WithCancel(t.Context())
	stored := k.etcd.Watch(ctx, "/registry/"+k.group+"/", clientv3.WithPrefix())
	var read sync.WaitGroup
	read.Go(func() { expectNoGraceStored(t, stored) })
	version := k.list().GetResourceVersion()
	var clients sync.WaitGroup
	for i := range objects {
		name := fmt.Sprintf("a-%d", i)
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
	if left := k.list(); len(left.Items) > 0 {
		t.Errorf("%d objects are left, such as %v", len(left.Items), left.Items[0].Object["metadata"])
	}
	cancel()
	read.Wait()
	expectHistory(t, k.events(version))
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

// deleteOften deletes an object a few times, at least once.
func (s skew) deleteOften(name string, random *rand.Rand) {
	graces := []any{"", 0, 1, 30, 60, 300, 600}
	for range 1 + random.IntN(6) {
		k := s.kinds[random.IntN(2)]
		got := k.delete(name, graces[random.IntN(len(graces))], nil)
		if got.code == http.StatusNotFound {
			return
		}
		if got.code != http.StatusOK {
			k.t.Errorf("delete %s: %d %s", name, got.code, got.text)
		}
	}
}

// removeFinalizer removes a finalizer once the object is being deleted. After a refusal it reads the object at the
// server that refused.
func (s skew) removeFinalizer(name, finalizer string, random *rand.Rand) {
	reader := s.kinds[random.IntN(2)]
	writer := s.kinds[random.IntN(2)]
	for refusals := 0; refusals < 100; {
		read := reader.get(name)
		if read.code == http.StatusNotFound {
			return // another controller removed the last one
		}
		if read.body.GetDeletionTimestamp() == nil {
			continue
		}
		got := writer.without(name, read.body, finalizer, random.IntN(2) == 0)
		switch got.code {
		case http.StatusOK, http.StatusNotFound:
			return
		case http.StatusConflict:
		case http.StatusUnprocessableEntity:
			refusals++
			reader = writer
		default:
			writer.t.Errorf("%s: %d %s", name, got.code, got.text)
			return
		}
	}
	writer.t.Errorf("%s keeps %s: refused again and again", name, finalizer)
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
func expectHistory(t *testing.T, events []*unstructured.Unstructured) {
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
