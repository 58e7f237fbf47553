package controllertest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
)

// EventsAfter runs the function with a tracker, in a bubble of package synctest, and returns
// the events that the tracker has sent a minute later. Controllers are created before: the
// goroutines of their queues would keep the bubble open.
func EventsAfter(t *testing.T, track func(t *testing.T, tracker *waiting.Tracker)) []string {
	t.Helper()
	var events []string
	synctest.Test(t, func(t *testing.T) {
		tracker, recorder := waiting.New(clock.RealClock{}), record.NewFakeRecorder(10)
		tracker.SendTo(recorder, func(string) bool { return false })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			tracker.Run(ctx)
		}()
		track(t, tracker)
		<-time.After(time.Minute)
		synctest.Wait()
		cancel()
		<-ended
		close(recorder.Events)
		for event := range recorder.Events {
			events = append(events, event)
		}
	})
	return events
}
