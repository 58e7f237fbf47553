package controller

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/examples/internal/guest"
)

func TestGuestShutsDownAndObjectGoes(t *testing.T) {
	w := newWorld(t, machine(""))
	w.start()
	w.await("guest runs")
	live := w.get()
	if !slices.Equal(live.GetFinalizers(), []string{mine}) {
		t.Fatalf("finalizers %v", live.GetFinalizers())
	}
	w.update(deleted(live, time.Now(), time.Time{}))
	w.await("Normal ShutdownRequested")
	w.await("Normal PoweredOff clean")
	w.awaitGone()
}

func TestGuestIsOffAtItsDeadline(t *testing.T) {
	w := newWorld(t, machine(stubborn))
	w.start()
	w.await("guest runs")
	live, end := w.get(), time.Now().Add(3*time.Second).Truncate(time.Second)
	asked, due := make(chan time.Time, 1), make(chan time.Time, 1)
	w.client.PrependReactor("get", "machines", func(clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case asked <- time.Now(): // the controller reads the object before it powers off
		default:
		}
		return false, nil, nil
	})
	time.AfterFunc(time.Until(end), func() { due <- time.Now() }) // as late as each timer on a busy machine
	w.update(deleted(live, end.Add(-time.Second), end))
	w.await("by the grace period of the deletion")
	w.await("Normal PoweredOff forced: the guest ran until its deadline")
	w.awaitGone()
	began := <-asked
	if late := began.Sub(<-due); began.Before(end) || late > time.Second {
		t.Errorf("powered off %v after a timer of the test, %v after the deadline", late, began.Sub(end))
	}
}

func TestForcedDeletionDoesNotAskGuest(t *testing.T) {
	w := newWorld(t, machine(stubborn))
	w.start()
	w.await("guest runs")
	now := time.Now()
	w.update(deleted(w.get(), now, now))
	w.await("Normal PoweredOff forced: the deletion is forced")
	w.awaitGone()
}

func TestEarlierDeadlineSetsTimerAgain(t *testing.T) {
	w := newWorld(t, machine(stubborn))
	w.start()
	w.await("guest runs")
	now := time.Now()
	w.update(deleted(w.get(), now, now.Add(time.Hour)))
	w.await("Normal ShutdownRequested")
	w.update(deleted(w.get(), now, now.Add(time.Minute)))
	w.await("Normal DeadlineMoved")
	w.update(deleted(w.get(), now, now.Add(time.Second)))
	w.await("Normal PoweredOff forced: the guest ran until its deadline")
	w.awaitGone()
}

func TestDeadlineThatPassedMeanwhileCountsAtStart(t *testing.T) {
	w := newWorld(t, machine(stubborn))
	w.start()
	w.await("guest runs")
	now := time.Now()
	w.update(deleted(w.get(), now, now.Add(time.Hour)))
	w.await("Normal ShutdownRequested")
	w.end()
	w.update(deleted(w.get(), now.Add(-time.Minute), now.Add(-time.Second)))
	w.start()
	w.await("Normal PoweredOff forced: the guest ran until its deadline")
	w.awaitGone()
}

// A controller that starts again does not ask a second time, and waits as the one before.
func TestGuestIsAskedOnceAcrossRestarts(t *testing.T) {
	w := newWorld(t, machine(stubborn))
	w.start()
	w.await("guest runs")
	now := time.Now()
	w.update(deleted(w.get(), now, now.Add(time.Hour)))
	w.await("Normal ShutdownRequested")
	w.end()
	w.start()
	w.await("ready")
	w.update(deleted(w.get(), now, now.Add(time.Minute)))
	w.await("Normal DeadlineMoved")
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := strings.Join(w.seen, "\n"); strings.Contains(seen, "ShutdownRequested") {
		t.Errorf("asked again:\n%s", seen)
	}
}

func TestGuestThatEndedMeanwhileLetsObjectGo(t *testing.T) {
	w := newWorld(t, machine(""))
	w.start()
	w.await("guest runs")
	w.end()
	if count := w.endGuests(); count != 1 {
		t.Errorf("%d guests run on without a controller, want 1", count)
	}
	w.update(deleted(w.get(), time.Now(), time.Time{}))
	w.start()
	w.await("Normal PoweredOff clean")
	w.awaitGone()
}

// The cache may be of another time than the API server: a deletion that is not there ends no guest.
func TestGuestIsNotEndedBecauseOfCache(t *testing.T) {
	w := newWorld(t, machine(stubborn))
	w.start()
	w.await("guest runs")
	live, now := w.get(), time.Now()
	var once sync.Once
	answered := make(chan struct{})
	w.client.PrependReactor("get", "machines", func(clienttesting.Action) (stale bool, _ runtime.Object, _ error) {
		once.Do(func() { stale = true; close(answered) })
		return stale, live, nil
	})
	w.update(deleted(live.DeepCopy(), now, now))
	select {
	case <-answered:
	case <-time.After(limit):
		t.Fatal("the object is not read live")
	}
	w.end()
	if seen := strings.Join(w.seen, "\n"); strings.Contains(seen, "PoweredOff") {
		t.Errorf("the guest is off:\n%s", seen)
	}
	w.start()
	w.await("Normal PoweredOff forced")
	w.awaitGone()
}

func TestGuestThatCannotBeEndedKeepsObject(t *testing.T) {
	w := newWorld(t, machine(stubborn))
	w.kind.PowerOff = []syscall.Signal{syscall.SIGTERM}
	w.start()
	w.await("guest runs")
	now := time.Now()
	w.update(deleted(w.get(), now, now))
	for range 2 { // tried again
		w.await("Warning PowerOffFailed")
	}
	if live := w.get(); !slices.Equal(live.GetFinalizers(), []string{mine}) {
		t.Fatalf("finalizers %v while the guest runs", live.GetFinalizers())
	}
	w.end()
	w.endGuests()
	w.start()
	w.awaitGone()
}

func TestStartIsTriedAgain(t *testing.T) {
	w := newWorld(t, machine(""))
	command, calls := w.kind.Command, 0
	w.kind.Command = func(object *unstructured.Unstructured) (guest.Command, error) {
		if calls++; calls < 3 {
			return guest.Command{}, errors.New("the port is taken")
		}
		return command(object)
	}
	w.start()
	for range 2 {
		w.await("Warning StartFailed the port is taken")
	}
	w.await("Normal Started")
}

func TestGuestThatEndsIsStartedAgain(t *testing.T) {
	w := newWorld(t, machine(""))
	w.start()
	for range 3 {
		line := w.await("Normal Started")
		pid, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
		must(t, err)
		must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	w.await("Normal Started")
}

func TestObjectWithoutRecordStays(t *testing.T) {
	object := machine("")
	object.SetFinalizers([]string{mine})
	w := newWorld(t, deleted(object, time.Now(), time.Time{}))
	w.start()
	w.await("Warning RecordMissing")
	if live := w.get(); !slices.Equal(live.GetFinalizers(), []string{mine}) {
		t.Errorf("finalizers %v", live.GetFinalizers())
	}
}

func TestObjectStaysWhileEndIsUnproven(t *testing.T) {
	w := newWorld(t, machine(stubborn))
	w.start()
	w.await("guest runs")
	w.end()
	file := filepath.Join(w.path, string(uid), "guest")
	must(t, os.Rename(file, file+".away"))
	now := time.Now()
	w.update(deleted(w.get(), now, now))
	w.start()
	w.await("Warning GuestUnknown")
	if live := w.get(); !slices.Equal(live.GetFinalizers(), []string{mine}) {
		t.Errorf("finalizers %v", live.GetFinalizers())
	}
	must(t, os.Rename(file+".away", file))
	w.await("Normal PoweredOff forced: the deletion is forced")
	w.awaitGone()
}

func TestFinalizersOfOthersStay(t *testing.T) {
	object := machine("")
	object.SetFinalizers([]string{"example.com/other"})
	w := newWorld(t, object)
	w.start()
	w.await("guest runs")
	w.update(deleted(w.get(), time.Now(), time.Time{}))
	w.await("Normal PoweredOff clean")
	w.end()
	if live := w.get(); !slices.Equal(live.GetFinalizers(), []string{"example.com/other"}) {
		t.Errorf("finalizers %v", live.GetFinalizers())
	}
}

func TestObjectOfOtherHostIsLeftAlone(t *testing.T) {
	elsewhere, here := machine(""), machine("")
	must(t, unstructured.SetNestedField(elsewhere.Object, "other", "spec", "host"))
	here.SetName("b")
	here.SetUID("b")
	w := newWorld(t, elsewhere, here)
	w.start()
	w.await("Normal Started")
	w.end()
	if live := w.get(); len(live.GetFinalizers()) > 0 {
		t.Errorf("finalizers %v", live.GetFinalizers())
	}
}

func TestGuestOfRemovedObjectIsReported(t *testing.T) {
	w := newWorld(t, machine(""))
	w.start()
	w.await("guest runs")
	must(t, w.client.Tracker().Delete(resource, "default", "a"))
	w.await("log default/a is gone, another client has removed its finalizer")
	w.end()
	w.endGuests()
	w.start()
	w.await("ready")
	w.end()
	dir, err := guest.Open(w.path)
	must(t, err)
	defer func() { must(t, dir.Close()) }()
	if left := dir.Records(); len(left) > 0 {
		t.Errorf("records %v", left)
	}
}

func TestMissingDefinitionIsNamed(t *testing.T) {
	w := newWorld(t, machine(""))
	var tries atomic.Int32
	w.client.PrependReactor("list", "machines", func(clienttesting.Action) (bool, runtime.Object, error) {
		if tries.Add(1) > 1 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewGenericServerResponse(404, "list", resource.GroupResource(), "", "", 0, true)
	})
	w.start()
	w.await("the API server does not serve machines.example.com: apply deploy/crd.yaml")
	w.await("ready")
	w.await("Normal Started")
}

func TestGuestThatNeverRanHasNotEndedByItself(t *testing.T) {
	w := newWorld(t, machine(""))
	w.kind.Command = func(*unstructured.Unstructured) (guest.Command, error) {
		return guest.Command{}, errors.New("the port is taken")
	}
	w.start()
	w.await("Warning StartFailed")
	w.update(deleted(w.get(), time.Now().Truncate(time.Second), time.Time{}))
	w.awaitGone()
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := strings.Join(w.seen, "\n"); strings.Contains(seen, "PoweredOff") {
		t.Errorf("of a guest that never ran: %s", seen)
	}
}
