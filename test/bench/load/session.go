package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

const (
	// atOnce is the number of requests that users send at once.
	atOnce = 64
	// quiet is how long no write may happen at the end of a phase. It is longer than any delay
	// with which a program sends an event or removes a journal entry.
	quiet = 2500 * time.Millisecond
	// quietPoll is the interval at which the version of the storage is read.
	quietPoll = 250 * time.Millisecond
	// quietLimit bounds the wait for that: what fails is retried again and again.
	quietLimit = time.Minute
	// phaseLimit bounds a phase.
	phaseLimit = 40 * time.Minute
)

// session is one turn.
type session struct {
	turn     plan.Turn
	programs *Programs
	client   kubernetes.Interface
	meter    *meter
	view     *view
	// ceiling sends the fewest requests that could do it; nil for programs.
	ceiling *ceiling
	// stopWatches ends the watches of the ceiling, before the proxies to the API server end.
	stopWatches context.CancelFunc
	// objects and deleter take the place of view and ceiling where garbage collectors are measured.
	objects   *objects
	deleter   *deleter
	namespace string
	phases    []measure.Phase
	// rest is the memory while nothing happens, nil where that is not measured.
	rest map[string]float64
	// profiles is the directory of profiles, empty for none.
	profiles string
}

// Run runs one turn and returns what it cost. It writes profiles of the API server below the
// directory, unless that is empty.
func Run(ctx context.Context, cluster *Cluster, turn plan.Turn, profiles string) (result measure.Turn, err error) {
	script, found := scripts()[turn.Scenario.Kind]
	if !found {
		return result, fmt.Errorf("run %s: there is no script of kind %q", turn.Scenario.Name, turn.Scenario.Kind)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	programs, err := cluster.NewPrograms(ctx, turn)
	if err != nil {
		return result, err
	}
	s := &session{turn: turn, programs: programs, meter: newMeter(), profiles: profiles, stopWatches: func() {}}
	result, err = s.run(ctx, cluster, script)
	s.stopWatches()
	err = errors.Join(err, programs.Stop(context.WithoutCancel(ctx)))
	if s.view != nil {
		err = errors.Join(err, s.wipe(ctx))
	}
	if s.objects != nil {
		err = errors.Join(err, s.wipeObjects(ctx))
	}
	if err != nil {
		return result, fmt.Errorf("run %s, round %d, %s: %w", turn.Scenario.Name, turn.Round, turn.Side, err)
	}
	return result, nil
}

// run runs the script while the programs run.
func (s *session) run(ctx context.Context, cluster *Cluster, script script) (result measure.Turn, err error) {
	if err := s.open(ctx, cluster); err != nil {
		return result, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go s.guard(ctx, cancel)
	if err := script(ctx, s); err != nil {
		return result, err
	}
	if err := s.programs.Err(); err != nil {
		return result, err
	}
	result = measure.Turn{Turn: s.turn, Phases: s.phases, RestMemory: s.rest}
	result.PeakMemory, err = s.programs.PeakMemory()
	return result, err
}

// guard ends the turn when a program has ended.
func (s *session) guard(ctx context.Context, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := s.programs.Err(); err != nil {
			cancel(err)
			return
		}
	}
}

// open connects the users, and the ceiling.
func (s *session) open(ctx context.Context, cluster *Cluster) error {
	config := cluster.Client(Admin, "")
	config.Wrap(s.meter.wrap)
	limit := limited(atOnce)
	if s.turn.Side == plan.Ceiling {
		config.Wrap(limit)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect users: %w", err)
	}
	s.client = client
	if s.namespace, err = s.prepare(ctx); err != nil {
		return err
	}
	if s.turn.Scenario.Garbage() {
		return s.openObjects(ctx, cluster, config)
	}
	if s.view, err = openView(ctx, client, s.namespace); err != nil {
		return err
	}
	if s.turn.Side == plan.Ceiling {
		var watching context.Context
		watching, s.stopWatches = context.WithCancel(ctx)
		s.ceiling, err = newCeiling(watching, cluster, s, limit)
	}
	return err
}

// inParallel calls f for each number below size, atOnce at the same time.
func inParallel(ctx context.Context, size int, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range size {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// measure runs the work of a phase that handles volumes, waits until no program writes any
// more, and notes what the phase cost.
func (s *session) measure(ctx context.Context, name string, volumes int,
	work func(context.Context) error) (*measure.Phase, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, phaseLimit, fmt.Errorf("%s took longer than %s", name, phaseLimit))
	defer cancel()
	var w measure.Window
	var err error
	user := s.meter.counters()
	if w.Before, err = s.programs.Counters(ctx, s.client.CoreV1().RESTClient()); err != nil {
		return nil, err
	}
	if w.Begin, err = s.programs.Sample(); err != nil {
		return nil, err
	}
	stop := s.profile(ctx, name)
	if err := work(ctx); err != nil {
		return nil, err
	}
	if w.Done, err = s.programs.Sample(); err != nil {
		return nil, err
	}
	if w.End, err = s.awaitQuiet(ctx); err != nil {
		return nil, err
	}
	if err := stop(); err != nil {
		return nil, err
	}
	if w.After, err = s.programs.Counters(ctx, s.client.CoreV1().RESTClient()); err != nil {
		return nil, err
	}
	w.User = s.meter.counters().Minus(user)
	s.phases = append(s.phases, w.Phase(name, volumes))
	return &s.phases[len(s.phases)-1], nil
}

// awaitQuiet waits until no client has written anything for a while: events are sent late. It
// returns the sample of the last write, or that of quietLimit.
func (s *session) awaitQuiet(ctx context.Context) (last measure.Sample, err error) {
	version, begin := "", time.Now()
	ticker := time.NewTicker(quietPoll)
	defer ticker.Stop()
	for {
		now, err := s.version(ctx)
		if err != nil {
			return last, err
		}
		if now != version {
			version = now
			if last, err = s.programs.Sample(); err != nil {
				return last, err
			}
		}
		if time.Since(last.Time) >= quiet || time.Since(begin) >= quietLimit {
			return last, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return last, fmt.Errorf("wait until nobody writes: %w", context.Cause(ctx))
		}
	}
}

// version returns the version of the whole storage.
func (s *session) version(ctx context.Context) (string, error) {
	list, err := s.client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("read version of the storage: %w", err)
	}
	return list.ResourceVersion, nil
}
