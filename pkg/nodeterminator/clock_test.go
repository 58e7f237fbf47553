package nodeterminator

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/drain"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// dated is a server whose answers have the time of a clock that is ahead of ours.
type dated time.Duration

func (d dated) RoundTrip(*http.Request) (*http.Response, error) {
	date := time.Now().Add(time.Duration(d)).UTC().Format(http.TimeFormat)
	return &http.Response{Header: http.Header{"Date": {date}}, Body: http.NoBody}, nil
}

// ask sends one request, whose answer sets the clock.
func (d dated) ask(w *world) {
	w.t.Helper()
	response, err := w.Clock.Wrap(d).RoundTrip(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = response.Body.Close()
}

// deaf is a provider that answers to Stop alone.
type deaf struct{ *machines }

func (deaf) Get(ctx context.Context, _ instances.Instance) (instances.State, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// inDeadline runs the test with node a, whose deletion was requested a moment ago by the clock of the server, and its E.
// The server has answered once, at this fraction of a second, and answers to each read of a Lease, which is counted.
func inDeadline(t *testing.T, ahead, fraction, period time.Duration,
	test func(w *world, end time.Time, reads *atomic.Int64)) {
	t.Helper()
	at := time.Now()
	inWorld(t, func(w *world) {
		var reads atomic.Int64
		w.Instances = deaf{w.machines}
		w.before("get", "leases", func(clienttesting.Action) {
			reads.Add(1)
			dated(ahead).ask(w)
		})
		<-time.After(fraction)
		dated(ahead).ask(w)
		requested := time.Now().Add(ahead).Truncate(time.Second)
		end := requested.Add(period)
		n := withFirstAction(deletedNode("a", deadline.Limited(period).String(), requested), requested)
		n.Labels[v1.LabelNodeExcludeBalancers] = ""
		n.Annotations = map[string]string{termination.InstanceAnnotation: n.Spec.ProviderID,
			termination.ScaleDownDisabled:   "true",
			termination.TimestampAnnotation: end.UTC().Format(time.RFC3339)}
		if err := w.client.Tracker().Add(n); err != nil {
			w.t.Fatal(err)
		}
		w.pods.result = drain.Result{Synced: true, Pods: node.Awaited}
		go w.loop.Run(w.ctx, 1)
		w.cached(n)
		w.Notify("a")
		test(w, end, &reads)
	}, leaseAt("a", at))
}

func (w *world) isStopped() bool { return slices.Contains(w.machines.called(), "stop mock://a") }

// #08 The clock of this machine is five minutes off: Stop is called at E by the clock of the API server.
func TestClockOfTheMachineDoesNotMatter(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		inDeadline(t, ahead, 0, 30*time.Second, func(w *world, _ time.Time, _ *atomic.Int64) {
			<-time.After(28 * time.Second)
			if w.isStopped() {
				w.t.Errorf("the server is ahead by %v: the machine is stopped before E", ahead)
			}
			<-time.After(4 * time.Second)
			if !w.isStopped() {
				w.t.Errorf("the server is ahead by %v: the machine is not stopped at E", ahead)
			}
			if skew := w.Clock.Skew() + ahead; skew.Abs() > time.Second {
				w.t.Errorf("the metric says %v, want %v", w.Clock.Skew(), -ahead)
			}
		})
	}
}

// Answers name whole seconds. Stop before E would take time to unmount, Stop a second later is too late: the Lease of the
// node is read a few times before E, and only then.
func TestStopIsCalledAtE(t *testing.T) {
	for fraction := 10 * time.Millisecond; fraction < time.Second; fraction += 140 * time.Millisecond {
		inDeadline(t, 0, fraction, 2*time.Minute, func(w *world, end time.Time, reads *atomic.Int64) {
			<-time.After(time.Until(end) - time.Millisecond)
			if w.isStopped() {
				w.t.Errorf("answer at %v: Stop is called before E", fraction)
			}
			<-time.After(151 * time.Millisecond)
			if !w.isStopped() {
				w.t.Errorf("answer at %v: Stop is not called 150 ms after E", fraction)
			}
			if got := reads.Load(); got > 5 {
				w.t.Errorf("%d reads", got)
			}
		})
	}
}
