package cloning_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting/waitingtest"
)

func TestEventNamesCloneThatIsServedHere(t *testing.T) {
	const want = "Normal DeletionWaiting CloneRunning: A volume is being cloned from the claim. Waiting for PersistentVolumeClaim ns/clone, which is cloned from the claim."
	for name, tc := range map[string]struct {
		change []func(*v1.PersistentVolumeClaim)
		served bool
		events int
	}{
		"clone is served here":         {[]func(*v1.PersistentVolumeClaim){protected, deleting}, true, 1},
		"clone of another driver":      {[]func(*v1.PersistentVolumeClaim){protected, deleting}, false, 0},
		"source is not deleted":        {[]func(*v1.PersistentVolumeClaim){protected}, true, 0},
		"source without the finalizer": {[]func(*v1.PersistentVolumeClaim){deleting}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			controller, _, _ := world(t, claim("source", tc.change...), claim("clone", waitsForCloneOf("source")))
			events := waitingtest.EventsAfter(t, func(t *testing.T, tracker *waiting.Tracker) {
				controller.TrackWaiting(tracker, func(clone *v1.PersistentVolumeClaim) bool { return tc.served && clone.Name == "clone" })
				if err := controller.Reconcile(t.Context(), "ns/source"); err != nil {
					t.Fatal(err)
				}
			})
			if len(events) != tc.events || tc.events > 0 && !strings.HasPrefix(events[0], want) {
				t.Errorf("events %q, want %d that begin with %q", events, tc.events, want)
			}
		})
	}
}
