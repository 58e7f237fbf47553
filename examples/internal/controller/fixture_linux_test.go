package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/examples/internal/guest"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// stubborn, as an argument of a guest, makes it ignore SIGTERM.
const stubborn = "stubborn"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == GuestCommand {
		os.Exit(guestRole(slices.Contains(os.Args, stubborn)))
	}
	os.Exit(m.Run())
}

func guestRole(stubborn bool) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	if err := guest.Announce(); err != nil {
		fmt.Println(err)
		return 1
	}
	_ = os.NewFile(4, "pipe").Close() // tells the test that no signal is missed
	for range signals {
		if !stubborn {
			return 0
		}
	}
	return 1
}

const (
	limit = 30 * time.Second
	uid   = types.UID("1b4e28ba-2fa1-11d2-883f-0016d3cca427")
	key   = "default/a"
	mine  = "example.com/guest"
)

var resource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "machines"}

// world is an API server without a network, a state directory, and at most one controller.
type world struct {
	t      *testing.T
	client *dynamicfake.FakeDynamicClient
	path   string
	kind   Kind

	mu     sync.Mutex
	seen   []string // events and the log
	change chan struct{}
	stop   context.CancelFunc
	ended  chan error
}

// newWorld returns a world with objects, whose controller does not run yet.
func newWorld(t *testing.T, objects ...*unstructured.Unstructured) *world {
	t.Helper()
	w := &world{t: t, path: t.TempDir(), change: make(chan struct{}, 1)}
	w.kind = Kind{Program: "test", Resource: resource, Finalizer: mine, PowerOff: []syscall.Signal{syscall.SIGKILL},
		Command: w.command}
	known := []runtime.Object{}
	for _, object := range objects {
		known = append(known, object)
	}
	w.client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "MachineList"}, known...)
	w.client.PrependReactor("patch", "machines", w.patch)
	t.Cleanup(func() { w.endGuests() })
	return w
}

// command returns the command of a guest, which is noted once it runs.
func (w *world) command(object *unstructured.Unstructured) (guest.Command, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return guest.Command{}, err
	}
	go func() {
		_, _ = io.Copy(io.Discard, reader)
		_ = reader.Close()
		w.note("guest runs")
	}()
	return guest.Command{Args: []string{GuestCommand, object.GetLabels()["how"]}, Files: []*os.File{writer}}, nil
}

// patch removes a deleted object with its last finalizer, as an API server does.
func (w *world) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	_, written, err := clienttesting.ObjectReaction(w.client.Tracker())(action)
	if object, ok := written.(*unstructured.Unstructured); ok && err == nil {
		if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
			err = w.client.Tracker().Delete(resource, object.GetNamespace(), object.GetName())
		}
	}
	return true, written, err
}

// machine returns an object, with the argument of its guest.
func machine(how string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Machine",
		"spec": map[string]any{"terminationGracePeriodSeconds": int64(600)}}}
	object.SetNamespace("default")
	object.SetName("a")
	object.SetUID(uid)
	object.SetResourceVersion("1")
	object.SetLabels(map[string]string{"how": how})
	return object
}

// deleted marks an object as deleted since the time, with a deadline unless that is the zero time.
func deleted(object *unstructured.Unstructured, since, end time.Time) *unstructured.Unstructured {
	object.SetDeletionTimestamp(&metav1.Time{Time: since})
	if !end.IsZero() {
		object.SetAnnotations(map[string]string{deadline.Annotation: deadline.Window{Start: since, End: end}.String()})
	}
	return object
}

// Write implements [io.Writer] for the log.
func (w *world) Write(line []byte) (int, error) {
	w.note("log " + string(bytes.TrimSpace(line)))
	return len(line), nil
}

func (w *world) note(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, line)
	select {
	case w.change <- struct{}{}:
	default:
	}
}

// log returns the events and the lines of the log that were not awaited.
func (w *world) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.seen, "\n")
}

// start starts a controller, which ends with the test or with the next kill.
func (w *world) start() {
	w.t.Helper()
	dir, err := guest.Open(w.path)
	must(w.t, err)
	ctx, stop := context.WithCancel(w.t.Context())
	recorder := record.NewFakeRecorder(1000)
	go func() {
		for event := range recorder.Events {
			w.note(event)
		}
	}()
	w.ended = make(chan error, 1)
	go func() {
		err := New(w.kind, "", w.client, dir, recorder, log.New(w, "", 0)).Run(ctx, func() { w.note("ready") })
		_ = dir.Close()
		w.ended <- err
	}()
	w.stop = stop
	w.t.Cleanup(w.end)
}

// end ends the controller. Its guests run on.
func (w *world) end() {
	w.t.Helper()
	if w.stop != nil {
		w.stop()
		must(w.t, <-w.ended)
		w.stop = nil
	}
}

// endGuests ends the guests while no controller runs, and returns how many ran.
func (w *world) endGuests() (count int) {
	w.t.Helper()
	dir, err := guest.Open(w.path)
	must(w.t, err)
	defer func() { must(w.t, dir.Close()) }()
	for _, known := range dir.Records() {
		if process := w.find(dir, known.UID); process != nil {
			must(w.t, process.PowerOff(syscall.SIGKILL))
			count++
		}
	}
	return count
}

// find returns the guest of an object, nil if there is none. A guest that is starting cannot be found yet.
func (w *world) find(dir *guest.Dir, uid types.UID) *guest.Process {
	w.t.Helper()
	for end := time.Now().Add(limit); ; {
		process, err := dir.Find(uid)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return process
		}
		if time.Now().After(end) {
			w.t.Fatal(err)
		}
		<-time.After(time.Millisecond)
	}
}

// await waits until an event or a line of the log contains the text, returns it and forgets everything until then.
func (w *world) await(text string) (line string) {
	w.t.Helper()
	for end := time.After(limit); ; {
		w.mu.Lock()
		i := slices.IndexFunc(w.seen, func(line string) bool { return strings.Contains(line, text) })
		if i >= 0 {
			line, w.seen = w.seen[i], w.seen[i+1:]
		}
		seen := strings.Join(w.seen, "\n")
		w.mu.Unlock()
		if i >= 0 {
			return line
		}
		select {
		case <-w.change:
		case <-end:
			w.t.Fatalf("waiting for %q, seen:\n%s", text, seen)
		}
	}
}

func (w *world) get() *unstructured.Unstructured {
	w.t.Helper()
	object, err := w.client.Resource(resource).Namespace("default").Get(w.t.Context(), "a", metav1.GetOptions{})
	must(w.t, err)
	return object
}

// update writes the object, as another client or the API server does.
func (w *world) update(object *unstructured.Unstructured) {
	w.t.Helper()
	must(w.t, w.client.Tracker().Update(resource, object, "default"))
}

// awaitGone waits until the object does not exist.
func (w *world) awaitGone() {
	w.t.Helper()
	watch, err := w.client.Resource(resource).Watch(w.t.Context(), metav1.ListOptions{})
	must(w.t, err)
	defer watch.Stop()
	end := time.After(limit)
	for {
		list, err := w.client.Resource(resource).List(w.t.Context(), metav1.ListOptions{})
		must(w.t, err)
		if len(list.Items) == 0 {
			return
		}
		select {
		case <-watch.ResultChan():
		case <-end:
			w.t.Fatalf("the object stays: %v", list.Items[0].Object)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
