package controller

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/examples/internal/guest"
)

// etcd was restored to a time before the deletion, and the guest of the deletion has ended.
func TestGuestOfRestoredObjectIsAskedAgain(t *testing.T) {
	w := newWorld(t, machine(""))
	w.start()
	w.await("guest runs")
	w.end()
	w.endGuests()
	dir, err := guest.Open(w.path)
	must(t, err)
	must(t, dir.Save(guest.Record{UID: uid, Key: "default/a", Deadline: time.Now().Truncate(time.Second), Reported: true}))
	must(t, dir.Close())
	w.start()
	w.await("guest runs")
	now := time.Now()
	w.update(deleted(w.get(), now, now.Add(time.Hour)))
	w.await("Normal ShutdownRequested")
	w.await("Normal PoweredOff clean")
	w.awaitGone()
}

// The state directory was copied to another host, or the host was renamed.
func TestGuestOfOtherHostIsNotStarted(t *testing.T) {
	w := newWorld(t, machine(""))
	w.start()
	w.await("guest runs")
	w.end()
	w.endGuests()
	moved := w.get()
	must(t, unstructured.SetNestedField(moved.Object, "other", "spec", "host"))
	w.update(deleted(moved, time.Now(), time.Time{}))
	w.start()
	w.await("the object belongs to another host")
	w.end()
	if count := w.endGuests(); count > 0 || len(w.get().GetFinalizers()) != 1 {
		t.Errorf("%d guests, finalizers %v", count, w.get().GetFinalizers())
	}
}

// The controller was killed before it could record that the guest runs, or its version did not record it.
func TestGuestOfKilledControllerIsReported(t *testing.T) {
	w := newWorld(t, machine(""))
	w.start()
	w.await("guest runs")
	w.end()
	dir, err := guest.Open(w.path)
	must(t, err)
	must(t, dir.Save(guest.Record{UID: uid, Key: key}))
	must(t, dir.Close())
	w.start()
	now := time.Now()
	w.update(deleted(w.get(), now, now.Add(time.Hour)))
	w.await("Normal ShutdownRequested")
	w.await("Normal PoweredOff clean")
	w.awaitGone()
}

// The disk is full when the guest starts, and has room when it ends.
func TestGuestStartedOnFullDiskIsReported(t *testing.T) {
	w := newWorld(t, machine(""))
	blocked, command := filepath.Join(w.path, string(uid), "record.json.new"), w.kind.Command
	w.kind.Command = func(object *unstructured.Unstructured) (guest.Command, error) {
		if err := os.Mkdir(blocked, 0o700); err != nil {
			return guest.Command{}, err
		}
		return command(object)
	}
	w.start()
	w.await("log default/a: save record")
	must(t, os.Remove(blocked))
	now := time.Now()
	w.update(deleted(w.get(), now, now.Add(time.Hour)))
	w.await("Normal PoweredOff clean")
	w.awaitGone()
}

// A guest that has filled the disk is ended, and its object goes: what the guest printed goes after the object.
func TestFullDiskKeepsNoObject(t *testing.T) {
	w := newWorld(t, machine(stubborn))
	w.start()
	w.await("guest runs")
	must(t, os.Mkdir(filepath.Join(w.path, string(uid), "record.json.new"), 0o700))
	now := time.Now()
	w.update(deleted(w.get(), now, now.Add(2*time.Second)))
	w.await("Normal ShutdownRequested")
	w.await("log default/a: save record")
	w.await("Normal PoweredOff forced: the guest ran until its deadline")
	w.awaitGone()
	w.end()
	if seen := w.log(); strings.Contains(seen, "ShutdownRequested") || strings.Contains(seen, "Failed") ||
		strings.Contains(seen, "PoweredOff") {
		t.Errorf("told twice, or not as it is:\n%s", seen)
	}
	if _, err := os.Stat(filepath.Join(w.path, string(uid))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the record is left: %v", err)
	}
}
