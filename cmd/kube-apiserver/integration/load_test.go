package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// manyWorkers are the flags of an API server that deletes thousands of objects in one request.
var manyWorkers = []string{"--extra-arg=delete-collection-workers=4", "--extra-arg=request-timeout=10m"}

// fill stores many objects with a finalizer in etcd, past the API server.
func (k kind) fill(count int) {
	k.t.Helper()
	k.create("pattern", finalizer)
	pattern, _ := k.stored("pattern")
	uid := string(k.get("pattern").body.GetUID())
	var puts []clientv3.Op
	for i := range count {
		name := fmt.Sprintf("a-%05d", i)
		value := strings.NewReplacer(`"name":"pattern"`, fmt.Sprintf(`"name":%q`, name), uid,
			fmt.Sprintf("%s%05d", uid[:len(uid)-5], i)).Replace(pattern)
		puts = append(puts, clientv3.OpPut(k.prefix()+name, value))
		if len(puts) == 100 || i == count-1 {
			if _, err := k.etcd.Txn(k.t.Context()).Then(puts...).Commit(); err != nil {
				k.t.Fatal(err)
			}
			puts = nil
		}
	}
	k.patch("pattern", withoutFinalizers)
	k.delete("pattern", "", nil)
	k.gone("pattern")
	k.t.Cleanup(func() { _, _ = k.etcd.Delete(context.Background(), k.prefix(), clientv3.WithPrefix()) })
	wait(k.t, func() error { // the watch cache has seen them
		if got := len(k.list().Items); got != count {
			return fmt.Errorf("%d objects, want %d", got, count)
		}
		return nil
	})
}

// prefix is the prefix of the keys in etcd.
func (k kind) prefix() string { return "/registry/" + k.group + "/machines/default/" }

// writes returns how many writes the keys in etcd have had since they were filled.
func (k kind) writes() int {
	k.t.Helper()
	found, err := k.etcd.Get(k.t.Context(), k.prefix(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		k.t.Fatal(err)
	}
	total := 0
	for _, key := range found.Kvs {
		total += int(key.Version) - 1
	}
	return total
}

// deleteAll deletes all objects in one request, without a grace period if it is "".
func (k kind) deleteAll(grace any) {
	k.t.Helper()
	body := options{"apiVersion": "v1", "kind": "DeleteOptions"}
	if grace != "" {
		body["gracePeriodSeconds"] = grace
	}
	if got := k.s.do(k.t, http.MethodDelete, k.path(""), asJSON, body); got.code != http.StatusOK {
		k.t.Fatalf("%d %.1000s", got.code, got.text)
	}
}

// inGrace returns the deadlines of all objects, and wants a grace period of each.
func (k kind) inGrace(seconds int64) map[string]deletion {
	k.t.Helper()
	found := map[string]deletion{}
	list := k.list()
	for i := range list.Items {
		got := deletionOf(&list.Items[i])
		if found[list.Items[i].GetName()] = got; got.kind != deadline.Graceful || got.field != seconds {
			k.t.Fatalf("%s: %+v", list.Items[i].GetName(), got)
		}
	}
	return found
}

// #20: one write per object, and none when nothing changes.
func TestLoadOfFiveThousandDeletions(t *testing.T) {
	const count = 5000
	s, _ := startAnother(t, "load", manyWorkers...)
	k := newKind(t, s, "load.example.com")
	k.fill(count)
	k.deleteAll(300)
	if got := k.writes(); got != count {
		t.Errorf("%d writes for %d objects", got, count)
	}
	if got := len(k.inGrace(300)); got != count {
		t.Errorf("%d objects, want %d", got, count)
	}
	for range 3 {
		k.deleteAll("")
	}
	if got := k.writes() - count; got != 0 {
		t.Errorf("%d writes for three deletions without a grace period", got)
	}
}

// killAmidDeletion deletes all objects, and kills the server once that many were written.
func (k kind) killAmidDeletion(server *process, early int) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	defer cancel()
	written := k.etcd.Watch(ctx, k.prefix(), clientv3.WithPrefix())
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, k.s.url+k.path("")+"?gracePeriodSeconds=300", nil)
	if err != nil {
		k.t.Fatal(err)
	}
	lost := make(chan error)
	go func() {
		response, err := k.s.client.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		lost <- err
	}()
	for seen := 0; seen < early; {
		seen += len((<-written).Events)
	}
	server.end(syscall.SIGKILL) // kube-apiserver is killed with its parent
	if err := <-lost; err == nil {
		k.t.Error("the request was answered before the server was killed")
	}
}

// The server is killed in the middle of a request for all objects. Each object is as before or in its grace period; the
// same request again completes the rest, and moves no deadline.
func TestLoadOfKillAmidDeletions(t *testing.T) {
	const count, early = 2000, 200
	s, first := startAnother(t, "killed", manyWorkers...)
	k := newKind(t, s, "killed.example.com")
	k.fill(count)
	k.killAmidDeletion(first, early)
	s, _ = startAnother(t, "killed", manyWorkers...)
	k = k.at(s).await()
	completed := k.writes()
	if completed < early || completed >= count {
		t.Errorf("%d of %d objects were written, want some", completed, count)
	}
	before := map[string]deletion{}
	for _, object := range k.list().Items {
		got := deletionOf(&object)
		if before[object.GetName()] = got; got.kind == deadline.Graceful && got.field != 300 ||
			got.kind != deadline.Graceful && got.kind != deadline.NotDeleted {
			t.Errorf("%s: %+v", object.GetName(), got)
		}
	}
	k.deleteAll(600)
	if got := k.writes(); got != count {
		t.Errorf("%d writes for %d objects", got, count)
	}
	for _, object := range k.list().Items {
		name, got := object.GetName(), deletionOf(&object)
		was := before[name]
		if was.kind == deadline.Graceful && got != was || was.kind != deadline.Graceful && got.field != 600 {
			t.Errorf("%s: %+v after %+v", name, got, was)
		}
	}
	if got, want := k.metrics(), fmt.Sprintf("granted %d, refused %d", count-completed, completed); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Logf("killed after %d of %d objects", completed, count)
}
