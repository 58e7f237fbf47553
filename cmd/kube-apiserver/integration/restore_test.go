package integration

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// store writes a value into etcd, as a restore of etcd does, or another program.
func (k kind) store(name, value string) {
	k.t.Helper()
	if _, err := k.etcd.Put(k.t.Context(), "/registry/"+k.group+"/machines/default/"+name, value); err != nil {
		k.t.Fatal(err)
	}
}

// rewrite changes the metadata of an object in etcd. Its value has the form in which an API server writes it.
func (k kind) rewrite(name string, change func(*unstructured.Unstructured)) {
	k.t.Helper()
	object := k.inEtcd(name)
	change(object)
	value, err := json.Marshal(object.Object)
	if err != nil {
		k.t.Fatal(err)
	}
	k.store(name, string(value)+"\n")
}

// setDeletion sets the fields of a deletion.
func setDeletion(object *unstructured.Unstructured, timestamp time.Time, seconds int64, window string) {
	metadata, _ := object.Object["metadata"].(map[string]any)
	metadata["deletionTimestamp"] = timestamp.UTC().Format(time.RFC3339)
	metadata["deletionGracePeriodSeconds"] = seconds
	annotations := object.GetAnnotations()
	delete(annotations, deadline.Annotation)
	if window != "" {
		annotations = map[string]string{deadline.Annotation: window}
	}
	object.SetAnnotations(annotations)
}

// #56: with the gate off and at stock the deadline waits in the annotation. A restore of etcd brings it back.
func TestDeadlineComesBackAfterStockAndRestore(t *testing.T) {
	k := newKind(t, ours(t), "back.example.com")
	k.create("a", finalizer)
	k.create("forced", finalizer)
	_, found := k.graceful("a", 300)
	k.delete("forced", 0, nil)
	saved, _ := k.stored("a")
	for i, start := range []func() (*server, error){shared.gateOff, shared.stock, shared.gateOff} {
		other := k.at(mustServe(t, start)).await()
		for name, want := range map[string]deletion{"a": found, "forced": {kind: deadline.Forced}} {
			deletionAtStock(t, other.patch(name, fmt.Sprintf(`{"metadata":{"labels":{"a":"%d"}}}`, i)), want)
			if other.delete(name, "", nil).code != http.StatusOK {
				t.Errorf("delete %s again", name)
			}
		}
	}
	k.expect(k.get("a"), "a", found) // upgrade again
	k.expect(k.get("forced"), "forced", forced)

	k.graceful("a", 60)
	k.store("a", saved)
	k.expect(k.get("a"), "a", found)
	k.patch("a", withoutFinalizers)
	k.gone("a")
	k.store("a", saved)
	k.expect(k.get("a"), "a", found)
	k.patch("a", withoutFinalizers)
	k.gone("a")
}

// Each server that starts again reads the longest grace period: ours, which granted it, and a stock one.
func TestLongestGracePeriodOutlivesRestarts(t *testing.T) {
	first, process := startAnother(t, "restarted")
	k := newKind(t, first, "longest.example.com")
	k.create("a", finalizer)
	granted := k.delete("a", math.MaxInt64, nil)
	found := deletionOf(granted.body)
	if found.kind != deadline.Graceful || found.field != math.MaxInt32 {
		t.Fatalf("%+v", found)
	}
	k.expect(granted, "a", found)
	process.end(syscall.SIGTERM)

	stock, beside, err := shared.run("restarted") // upstream's in its place
	if err != nil {
		t.Fatal(err)
	}
	deletionAtStock(t, k.at(stock).await().get("a"), found)
	beside.end(syscall.SIGTERM)

	again, _ := startAnother(t, "restarted")
	k = k.at(again).await()
	k.expect(k.get("a"), "a", found)
	shorter, _ := k.graceful("a", 300)
	warned(t, shorter, "")
}

// #54: whoever rewrites annotations at a stock API server can remove a deadline, or set another.
func TestClientAtStockRewritesAnnotations(t *testing.T) {
	k := newKind(t, ours(t), "rewritten.example.com")
	stock := k.at(mustServe(t, shared.stock)).await()
	for name, annotations := range map[string]map[string]string{"rebuilt": {"own": "x"}, "none": nil} {
		k.create(name, finalizer)
		k.graceful(name, 300)
		object := stock.get(name).body
		object.SetAnnotations(annotations)
		if got := stock.put(name, object); got.code != http.StatusOK {
			t.Errorf("%d %s", got.code, got.text)
		}
		k.expect(k.get(name), name, plain)
		k.patch(name, withoutFinalizers)
		k.gone(name)
	}
	k.create("moved", finalizer)
	_, found := k.graceful("moved", 300)
	object := stock.get("moved").body
	end := found.end.Add(time.Hour)
	stock.patch("moved", annotate(deadline.Window{Start: object.GetDeletionTimestamp().Time, End: end}.String()))
	k.expect(k.get("moved"), "moved", deletion{deadline.Graceful, 300 + 3600, end})
}

// #57: the server that granted the grace period had a clock ahead of that of the stock one, which moves the deletion
// timestamp to its own time. Up to a minute the deadline stays.
func TestClocksOfTwoServersDiffer(t *testing.T) {
	k := newKind(t, ours(t), "clocks.example.com")
	stock := k.at(mustServe(t, shared.stock)).await()
	for ahead, want := range map[int]deadline.Kind{1: deadline.Graceful, 40: deadline.Graceful, 90: deadline.Unspecified} {
		name := fmt.Sprintf("ahead-%d", ahead)
		k.create(name, finalizer)
		k.graceful(name, 600)
		requested := time.Now().Truncate(time.Second).Add(time.Duration(ahead) * time.Second)
		end := requested.Add(10 * time.Minute)
		k.rewrite(name, func(object *unstructured.Unstructured) {
			setDeletion(object, requested, 0, deadline.Window{Start: requested, End: end}.String())
		})
		_, revision := k.stored(name)
		k.expect(k.delete(name, "", nil), name, deletion{deadline.Graceful, 600, end}) // at ours nothing happens
		k.unchanged(name, revision)
		stock.delete(name, "", nil)
		got := deadline.Of(k.get(name).body)
		if got.Kind() != want || want == deadline.Graceful && !got.Deadline(0).Equal(end) {
			t.Errorf("%d s ahead: %v until %v, want %v until %v", ahead, got.Kind(), got.Deadline(0), want, end)
		}
		if at := deadline.Of(stock.get(name).body); at.Kind() != want || !at.Deadline(0).Equal(got.Deadline(0)) {
			t.Errorf("%d s ahead: %v until %v at stock, %v at ours", ahead, at.Kind(), at.Deadline(0), got.Deadline(0))
		}
		k.patch(name, withoutFinalizers)
		k.gone(name)
	}
}

// #17: another program stored a grace period, which a stock API server would wait for, for ever. Without room for a
// window the object stays as it is, and its finalizers go one by one.
func TestGracePeriodInEtcd(t *testing.T) {
	k := newKind(t, ours(t), "foreign.example.com")
	for name, annotations := range map[string]map[string]string{"with room": nil,
		"to the byte": {"example.com/full": strings.Repeat("x", 256*1024-len("example.com/full"))}} {
		t.Run(name, func(t *testing.T) {
			k, name := k.in(t), objectName(name)
			k.createWith(name, annotations, finalizer, second)
			end := time.Now().Truncate(time.Second).Add(5 * time.Minute)
			k.rewrite(name, func(object *unstructured.Unstructured) { setDeletion(object, end, 300, "") })
			_, revision := k.stored(name)
			for _, grace := range []any{0, 10} {
				if annotations != nil {
					warned(t, k.delete(name, grace, nil), "no room")
					k.unchanged(name, revision)
				}
			}
			if got := deletionOf(k.delete(name, "", nil).body); got != (deletion{deadline.Graceful, 300, end}) {
				t.Errorf("%+v", got)
			}
			for _, left := range []string{`["` + second + `"]`, "null"} {
				if got := k.patch(name, `{"metadata":{"finalizers":`+left+`}}`); got.code != http.StatusOK {
					t.Fatalf("%d %s", got.code, got.message())
				}
			}
			k.gone(name)
		})
	}
}
