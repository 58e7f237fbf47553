package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Config is the configuration of a demo.
type Config struct {
	// Binaries are the programs.
	Binaries sandbox.Binaries
	// Gates are the values of HonorPVReclaimPolicy, one for each run of the scenario.
	Gates []bool
	// Timeout limits everything except stopping the programs.
	Timeout time.Duration
	// Keep leaves data and logs behind.
	Keep bool
	// Printer shows the runs, Progress the programs that are being started.
	Printer  Printer
	Progress Progress
}

// Run shows the demo and leaves no process behind. Its error names the run with an
// unexpected outcome, the program that died with its last log line, or the condition
// that was waited for at the timeout. If ctx ends, the error is its cause.
func Run(ctx context.Context, config Config) (err error) {
	late := fmt.Errorf("the demo was not finished within %s, see --timeout", config.Timeout)
	limited, cancel := context.WithTimeoutCause(ctx, config.Timeout, late)
	defer cancel()
	guarded, fail := context.WithCancelCause(limited)
	defer fail(nil)
	cluster, err := StartCluster(guarded, ClusterConfig{Binaries: config.Binaries, Keep: config.Keep,
		Progress: config.Progress, Died: fail})
	if err != nil {
		return whyEnded(ctx, guarded, err)
	}
	var outcomes []Outcome
	for _, gate := range config.Gates {
		run := run{cluster: cluster, printer: config.Printer, fail: fail, outcome: Outcome{Gate: gate}}
		if err := run.show(guarded); err != nil {
			if ctx.Err() == nil && !config.Keep {
				fmt.Fprintln(config.Progress.Out, "the demo has failed; with --keep its logs are not removed")
			}
			return errors.Join(whyEnded(ctx, guarded, err), cluster.Stop())
		}
		outcomes = append(outcomes, run.outcome)
	}
	return errors.Join(config.Printer.Summarize(outcomes), unexpected(outcomes), cluster.Stop())
}

// whyEnded returns the reason for an error: the cause of the end of ctx, or else of
// guarded, which is derived from ctx.
func whyEnded(ctx, guarded context.Context, err error) error {
	cause := context.Cause(guarded)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case cause == nil || errors.Is(err, cause):
		return err
	}
	return cause
}

// run is one run of the scenario.
type run struct {
	cluster *Cluster
	printer Printer
	// fail ends the demo.
	fail    func(error)
	outcome Outcome
}

// show starts the programs, runs the scenario with its timeline, and lists the volumes
// that are left.
func (r *run) show(ctx context.Context) error {
	if err := r.cluster.StartPrograms(ctx, Programs{Honor: r.outcome.Gate}); err != nil {
		return err
	}
	if err := r.printer.Begin(r.outcome.Gate); err != nil {
		return err
	}
	if err := r.record(ctx); err != nil {
		return err
	}
	if err := r.printer.End(r.outcome); err != nil {
		return err
	}
	return r.cluster.StopPrograms()
}

// record prints the timeline while the scenario runs, up to the last action of any
// program.
func (r *run) record(ctx context.Context) error {
	recorder := startRecorder(newTimeline(r.outcome.Gate, time.Now()), r.printer, r.fail)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return followWrites(ctx, r.cluster.sandbox.Plane.AuditLog, r.last(), recorder.tell) })
	group.Go(func() error { return followCalls(ctx, r.cluster.driver.CallLog, recorder.tell) })
	group.Go(func() error { return r.runScenario(ctx, recorder.tell) })
	err, unprinted := group.Wait(), recorder.finish()
	return cmp.Or(err, unprinted)
}

// runScenario runs the scenario, stops the controllers and lists the volumes that are left.
func (r *run) runScenario(ctx context.Context, tell func(Event)) error {
	objects, stop, err := watchObjects(ctx, r.cluster.Client(), tell)
	if err != nil {
		return err
	}
	defer stop()
	story := scenario{cluster: r.cluster, objects: objects, tell: tell}
	if err := story.run(ctx, r.outcome.Gate); err != nil {
		return err
	}
	if err := r.cluster.StopControllers(); err != nil {
		return err
	}
	r.outcome.Volume = story.volume.Spec.CSI.VolumeHandle
	if r.outcome.Left, err = sandbox.StoredVolumes(ctx, r.cluster.driver.Socket); err != nil {
		return err
	}
	return r.endAudit(ctx)
}

// endAudit reads a volume that does not exist: followWrites stops at this request in the
// audit log.
func (r *run) endAudit(ctx context.Context) error {
	_, err := r.cluster.Client().CoreV1().PersistentVolumes().Get(ctx, r.last(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("end the run in the audit log: %w", err)
	}
	return nil
}

// last returns the name of the volume that endAudit reads, different in each run.
func (r *run) last() string { return fmt.Sprintf("end-of-run-%t", r.outcome.Gate) }
