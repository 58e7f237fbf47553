package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Config configures a run.
type Config struct {
	// Seed decides the plan and the choices of the users.
	Seed uint64
	// Duration is how long there are faults and users.
	Duration time.Duration
	// Upstream runs kube-controller-manager and csi-provisioner instead of our programs.
	Upstream bool
	// Binaries locates the programs.
	Binaries sandbox.Binaries
	// Out gets the progress, the findings and the statistics.
	Out io.Writer
}

// startLimit bounds the start of the world.
const startLimit = 3 * time.Minute

// Run runs the world and returns what was found. An error means that there is no result.
func Run(ctx context.Context, config Config) (Result, error) {
	counts := newCounters()
	w, err := startWorld(ctx, config, counts)
	if err != nil {
		return Result{}, err
	}
	result, err := runIn(ctx, w)
	err = errors.Join(err, w.stop(context.WithoutCancel(ctx)))
	if ctx.Err() != nil { // the user interrupted the run, and looks at no log
		return result, errors.Join(context.Cause(ctx), w.remove())
	}
	if err != nil {
		return result, fmt.Errorf("%w; the logs are in %s", err, w.dir)
	}
	if result.Err() != nil {
		fmt.Fprintf(config.Out, "the logs of all programs are in %s\n", w.dir)
		return result, nil
	}
	return result, w.remove()
}

// runIn runs users and faults in the world.
func runIn(ctx context.Context, w *world) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := newView(newRecorder(w.config.Upstream, w.admission))
	defer v.disconnect()
	if err := v.connect(ctx, w.client()); err != nil {
		return Result{}, err
	}
	watch := newWatcher(w, v)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() {
		if err := watch.run(ctx); err != nil {
			cancel(err)
		}
	})
	group.Go(func() {
		if err := v.record.followRequests(ctx, w.plane.AuditLog); err != nil {
			cancel(err)
		}
	})
	group.Go(func() { runNamespaceController(ctx, w) })
	if err := w.startPrograms(ctx); err != nil {
		return Result{}, err
	}
	c := &chaos{
		world: w, view: v, watch: watch, users: newUsers(w, v, watch),
		random: rand.New(rand.NewPCG(w.config.Seed, 2)), unrecorded: map[string]string{},
		returning: returning{used: map[string]*v1.PersistentVolumeClaim{}},
	}
	c.log = func(format string, args ...any) {
		fmt.Fprintf(w.config.Out, "%s %s\n", time.Now().UTC().Format("15:04:05"), fmt.Sprintf(format, args...))
	}
	return c.soak(ctx)
}

// soak lets users work under faults, ends the faults, and waits until all work has ended.
func (c *chaos) soak(ctx context.Context) (Result, error) {
	starting, cancel := context.WithTimeoutCause(ctx, startLimit, errors.New("the programs bind no claim"))
	defer cancel()
	if err := c.users.bindLongLived(starting); err != nil {
		return Result{}, err
	}
	c.log("begin: %d users, %s", userCount, c.world.config.Duration)
	working := time.Now()
	c.users.start(ctx, nil)
	duration := c.world.config.Duration
	if err := c.run(ctx, NewPlan(c.world.config.Seed, duration), duration); err != nil {
		return Result{}, err
	}
	c.users.leave()
	worked, finished := time.Since(working)-c.down, c.world.counts.sum(topicVolumes)
	c.log("the faults end after %d volumes; waiting until all work has ended", finished)
	c.returning.misfit(time.Time{})
	if err := c.changePhase(ctx, Phase{}); err != nil {
		return Result{}, err
	}
	last, abort := context.WithCancelCause(ctx)
	defer abort(errAborted)
	if err := c.refuse(last); err != nil {
		return Result{}, err
	}
	l, err := c.awaitQuiet(ctx)
	if err != nil {
		return Result{}, err
	}
	c.watch.drain(ctx)
	c.watch.checkDisks(0)
	c.users.abort(errAborted)
	abort(errAborted)
	c.users.all.Wait()
	return c.result(ctx, l, float64(finished)/worked.Seconds()), nil
}

// result reports what was found.
func (c *chaos) result(ctx context.Context, l left, rate float64) Result {
	counts := c.world.counts
	r := Result{Seed: c.world.config.Seed, Volumes: counts.sum(topicVolumes), Kills: counts.sum(topicKills),
		Faults: counts.sum(faultTopics...), Rate: rate}
	r.Leaked = c.report("leaked", l.leaked)
	r.Stuck = c.report("stuck", slices.Concat(l.stuck, l.open, c.goingOn))
	for _, text := range c.world.crashes() {
		r.Stuck = append(r.Stuck, text)
		fmt.Fprintf(c.world.config.Out, "crashed: %s\n", text)
	}
	r.Lost = c.report("lost", c.lost(ctx))
	if stored, err := c.world.disks.stored(); err == nil {
		r.Broken = c.view.record.broken(stored, c.world.disks.driver.DriverName)
	}
	found, most := c.world.storms.report()
	r.Broken = append(r.Broken, found...)
	for _, text := range r.Broken {
		fmt.Fprintf(c.world.config.Out, "rule broken (seed %d): %s\n", r.Seed, text)
	}
	if l.unrecorded > 0 {
		fmt.Fprintf(c.world.config.Out,
			"%d disks have no record since etcd was restored: exeunt audit finds them, the programs cannot\n", l.unrecorded)
	}
	counts.add(topicLeft, "found by audit after restore", l.unrecorded)
	counts.add(topicLeft, "in the journal", l.unresolved)
	counts.print(c.world.config.Out)
	fmt.Fprintf(c.world.config.Out, "at most %d writes of a program to one object within %s\n", most,
		stormTime)
	fmt.Fprintf(c.world.config.Out,
		"%.2f volumes per second while the API server answered, which was not so for %s; %s in all\n", rate,
		c.down.Round(time.Second), time.Since(counts.start).Round(time.Second))
	return r
}

// report prints findings with their history.
func (c *chaos) report(word string, findings []finding) []string {
	var texts []string
	for _, f := range findings {
		texts = append(texts, f.text)
		fmt.Fprintf(c.world.config.Out, "%s (seed %d): %s\n%s", word, c.world.config.Seed, f.text,
			c.view.history.about(f.keys...))
	}
	return texts
}
