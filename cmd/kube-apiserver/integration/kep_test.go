package integration

import (
	"net/http"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// The six integration tests of KEP-5673, by name.

func TestBasicGracefulDeletion(t *testing.T) {
	k := newKind(t, ours(t), "basic.example.com")
	k.create("a", finalizer)
	k.graceful("a", 30)
	k.patch("a", withoutFinalizers)
	k.gone("a")
}

func TestForceDeletion(t *testing.T) {
	k := newKind(t, ours(t), "forced.example.com")
	k.create("a", finalizer)
	got := k.delete("a", 0, nil)
	k.expect(got, "a", forced)
	if seconds := got.body.GetDeletionGracePeriodSeconds(); seconds == nil || *seconds != 0 {
		t.Errorf("deletionGracePeriodSeconds %v, want 0", seconds)
	}
	k.patch("a", withoutFinalizers)
	k.gone("a")
}

func TestGracePeriodUpdate(t *testing.T) {
	k := newKind(t, ours(t), "update.example.com")
	k.create("a", finalizer)
	k.graceful("a", 60)
	_, found := k.graceful("a", 10)
	k.expect(k.delete("a", 30, nil), "a", found)
	if found.field != 10 {
		t.Errorf("%+v, want 10 s", found)
	}
}

func TestNoFinalizers(t *testing.T) {
	k := newKind(t, ours(t), "none.example.com")
	k.create("a")
	if got := k.delete("a", 30, nil); got.code != http.StatusOK || deletionOf(got.body).field > 0 {
		t.Errorf("%d %s", got.code, got.text)
	}
	k.gone("a")
}

// The KEP waits five seconds. The clock of the deadline plays no part: so does this test, until the deadline has passed.
func TestFinalizerRemovalDuringGracePeriod(t *testing.T) {
	k := newKind(t, ours(t), "removal.example.com")
	for name, seconds := range map[string]int{"during": 60, "after": 1} {
		k.create(name, finalizer)
		_, found := k.graceful(name, seconds)
		for seconds == 1 && time.Now().Before(found.end) {
			k.expect(k.get(name), name, found)
		}
		if got := k.patch(name, withoutFinalizers); got.code != http.StatusOK {
			t.Errorf("%d %s", got.code, got.text)
		}
		k.gone(name)
	}
}

func TestMultipleFinalizers(t *testing.T) {
	k := newKind(t, ours(t), "multiple.example.com")
	k.create("a", finalizer, second)
	_, found := k.graceful("a", 30)
	k.expect(k.patch("a", `{"metadata":{"finalizers":["`+second+`"]}}`), "a", found)
	if found.kind != deadline.Graceful {
		t.Errorf("%+v", found)
	}
	k.patch("a", withoutFinalizers)
	k.gone("a")
}
