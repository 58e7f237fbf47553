package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// chaos carries out a plan.
type chaos struct {
	world  *world
	view   *view
	watch  *watcher
	users  *users
	random *rand.Rand
	log    func(format string, args ...any)
	// unrecorded are the disks whose record a restore of etcd removed, by handle.
	unrecorded map[string]string
	// returning are claims that a restore brings back without their volumes.
	returning returning
	// detached are dependents whose reference a restore brings back.
	detached detached
	// goingOn are leaders that did not end although etcd was restored.
	goingOn []finding
	// down is how long no API server answered.
	down time.Duration
}

// run carries out each action at its time, or as soon as the one before it has ended.
func (c *chaos) run(ctx context.Context, plan []Action, duration time.Duration) error {
	start := time.Now()
	for _, action := range plan {
		sandbox.Pause(ctx, time.Until(start.Add(action.At)))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.act(ctx, action); err != nil {
			return fmt.Errorf("%s: %w", action.Kind, err)
		}
	}
	sandbox.Pause(ctx, time.Until(start.Add(duration)))
	return ctx.Err()
}

// act carries out one action.
func (c *chaos) act(ctx context.Context, a Action) error {
	switch a.Kind {
	case Kill, KillLeader:
		c.kill(a)
	case Freeze, FreezeLeader:
		c.freeze(ctx, a)
	case RestartAPI:
		c.note("the API server is killed and started", topicEtcd, "API server killed")
		return c.restart(ctx, nil, false)
	case Snapshot:
		return c.copyEtcd(ctx)
	case Restore:
		return c.restore(ctx, a.Revision, a.Running && !c.world.config.Upstream)
	case ChangePhase:
		return c.changePhase(ctx, a.Phase)
	}
	return nil
}

// note records an action.
func (c *chaos) note(text, topic, kind string) {
	c.view.history.note(text)
	c.log("%s", text)
	if topic != "" {
		c.world.counts.add(topic, kind, 1)
	}
}

// target returns the process that an action is about, nil if no process leads.
func (c *chaos) target(a Action) *replica {
	replicas := c.world.replicas[a.Program]
	if len(replicas) == 0 {
		return nil
	}
	if leads := a.Kind == KillLeader || a.Kind == FreezeLeader; leads && !c.world.isAlone(a.Program) {
		return leading(replicas)
	}
	return replicas[a.Replica%len(replicas)]
}

func (c *chaos) kill(a Action) {
	if r := c.target(a); r != nil && r.kill() {
		c.note(fmt.Sprintf("%s: %s", a.Kind, r.name()), topicKills, a.Program.String()+leaderWord(a.Kind))
	}
}

func (c *chaos) freeze(ctx context.Context, a Action) {
	if r := c.target(a); r != nil && r.freeze(ctx, a.For) {
		c.note(fmt.Sprintf("%s: %s for %s", a.Kind, r.name(), a.For.Round(time.Millisecond)), topicFreezes,
			a.Program.String()+leaderWord(a.Kind))
		c.view.record.paused(time.Now(), time.Now().Add(a.For+time.Second))
	}
}

func leaderWord(kind ActionKind) string {
	if kind == KillLeader || kind == FreezeLeader {
		return " leader"
	}
	return ""
}

// changePhase begins a phase.
func (c *chaos) changePhase(ctx context.Context, phase Phase) error {
	text := "no faults"
	if phase.Faulty {
		text = fmt.Sprintf("faults of the API connections, and %d faults of the driver", len(phase.Faults))
	}
	c.note(text, "", "")
	c.world.setRates(phase.Rates)
	if c.world.admission { // served since Kubernetes 1.36
		limited, cancel := context.WithTimeout(ctx, attempt)
		defer cancel()
		if err := setUndo(limited, c.world.client(), phase.Faulty); err != nil {
			return err
		}
	}
	return c.world.disks.restart(ctx, slices.Concat(c.returning.faults(), phase.Faults))
}

// restart kills and starts the control plane, and watches it again.
func (c *chaos) restart(ctx context.Context, change func(*sandbox.ControlPlane) error, restored bool) error {
	c.view.disconnect()
	c.view.record.resumed(restored)
	began := time.Now()
	defer func() { c.down += time.Since(began) }()
	if err := c.world.restartPlane(ctx, change); err != nil {
		return err
	}
	return c.view.connect(ctx, c.world.client())
}

// copyEtcd copies the data of etcd while some claims are not bound yet, and has them bound after it.
func (c *chaos) copyEtcd(ctx context.Context) error {
	claims, err := c.returning.create(ctx, c.users)
	if err != nil {
		return err
	}
	if c.world.treeUsers() > 0 {
		if err := c.detached.create(ctx, c.users); err != nil {
			return err
		}
	}
	c.note("etcd is copied", topicEtcd, "snapshots")
	if err := c.restart(ctx, c.world.saveEtcd, false); err != nil {
		return err
	}
	c.returning.use(ctx, claims)
	return c.detached.detach(ctx)
}

// restore stops all users and, unless they are running, all programs, replaces the data of etcd with the copy, and starts
// them again. What was created since the copy has no record any more.
func (c *chaos) restore(ctx context.Context, revision Revision, running bool) error {
	text := "the " + string(revision)
	if running {
		text += ", and the programs run on"
	}
	c.note("etcd is restored with "+text, topicEtcd, "restores with "+text)
	c.users.abortAll()
	c.returning.end(usedWithin)
	if !running {
		c.world.haltPrograms()
	}
	c.watch.drain(ctx)
	led := c.world.leaders()
	missing, err := c.loadCopy(ctx, revision)
	if err != nil {
		return err
	}
	c.log("after the restore %d volumes have no disk, and %d disks have no volume", missing, len(c.unrecorded))
	c.returning.misfit(time.Now().Add(misfitFor))
	if err := c.world.disks.restart(ctx, slices.Concat(c.returning.faults(), c.world.disks.faults)); err != nil {
		return err
	}
	if !running {
		if err := c.world.runPrograms(ctx); err != nil {
			return err
		}
	}
	c.users.start(ctx, func(ctx context.Context) {
		c.users.sweep(ctx, c.random)
		c.returning.useAgain(ctx, c.users)
		c.detached.orphan(ctx, c.users)
	})
	if running { // no process is killed meanwhile, or it would forget what it remembers
		calm := time.Now().Add(calmFor)
		c.goingOn = append(c.goingOn, goingOn(led, noticedWithin)...)
		sandbox.Pause(ctx, time.Until(calm))
	}
	return nil
}

// loadCopy replaces the data of etcd with the copy, and returns the number of volumes whose disk is gone.
func (c *chaos) loadCopy(ctx context.Context, revision Revision) (missing int, err error) {
	var stored map[string]string
	load := c.world.loadEtcd(ctx, revision)
	change := func(plane *sandbox.ControlPlane) (err error) {
		sandbox.Pause(ctx, callTimeout+time.Second) // until calls have ended that began before
		if stored, err = c.world.disks.stored(); err != nil {
			return err
		}
		c.world.delayVolumes()
		return load(plane)
	}
	if err := c.restart(ctx, change, true); err != nil {
		return 0, err
	}
	return c.watch.excuse(stored), c.findUnrecorded()
}

// findUnrecorded remembers the disks without a PersistentVolume.
func (c *chaos) findUnrecorded() error {
	stored, err := c.world.disks.stored()
	if err != nil {
		return err
	}
	c.view.mu.Lock()
	defer c.view.mu.Unlock()
	known := map[string]bool{}
	for _, volume := range c.view.volumes {
		known[handleOf(volume)] = true
	}
	for handle, name := range stored {
		if !known[handle] {
			c.unrecorded[handle] = name
			c.view.record.gaveUp(handle)
		}
	}
	return nil
}
