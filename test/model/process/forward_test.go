package process_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

func TestForwardCarriesOutOnlyTheChosenPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := process.NewForward(process.PVController)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Keep()
		volume := server.Object{
			Key: server.Key{Resource: "persistentvolumes", Name: "disk"}, Version: 1, Count: 1,
			JSON: `{"kind":"PersistentVolume","apiVersion":"v1","metadata":{"name":"disk"}}`,
		}
		start := take(t, f, process.Off, process.Input{Start: &process.Start{Listed: []server.Object{volume}}})
		keys := f.Local(start).Keys
		if len(keys) == 0 {
			t.Fatal("the volume is in no queue")
		}
		for _, key := range keys { // only promised
			if next, err := f.Next(start, process.Input{Reconcile: &key}, ""); err != nil || !f.IsPromised(next) {
				t.Errorf("reconcile %v: promised %v, error %v", key, f.IsPromised(next), err)
			}
		}
		busy := take(t, f, start, process.Input{Reconcile: &keys[0]})
		if calls := f.Local(busy).Calls; len(calls) != 1 || !strings.Contains(calls[0].String(), "persistentvolumes/disk") ||
			!f.IsSending() {
			t.Errorf("calls %v, want a write of the volume", calls)
		}
		f.Keep(busy)
		if _, err := f.Next(start, process.Input{Reconcile: &keys[0]}, ""); err == nil {
			t.Error("the program went back to a state that it has left")
		}
	})
}

func take(t *testing.T, f *process.Forward, from process.State, input process.Input) process.State {
	t.Helper()
	next, err := f.Next(from, input, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Take(next, func(int) {}); err != nil {
		t.Fatal(err)
	}
	return next
}
