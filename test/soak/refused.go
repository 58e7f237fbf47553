package main

import (
	"context"
	"fmt"
	"time"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// undoneFor is how long after the end of the faults writes are undone.
const undoneFor = 12 * time.Second

// refuse has lifecycles and trees whose writes are denied or undone, once the faults have ended: no process that
// starts and no watch that is interrupted makes up for a write that nobody repeats.
func (c *chaos) refuse(ctx context.Context) error {
	c.note("webhooks deny and undo writes, and nothing else fails", "", "")
	c.users.refused(ctx, Choices{Denied: true})
	if !c.world.admission { // no version before Kubernetes 1.36 serves the policy
		return nil
	}
	if err := setUndo(ctx, c.world.client(), true); err != nil {
		return err
	}
	sandbox.Pause(ctx, settle) // until the API server knows the policy
	c.users.refused(ctx, Choices{Undone: true})
	sandbox.Pause(ctx, undoneFor)
	return setUndo(ctx, c.world.client(), false)
}

// refused begins one lifecycle of each sort and order, and one tree of each outcome.
func (u *users) refused(ctx context.Context, choices Choices) {
	for _, sort := range []Sort{Dynamic, Waiting, Static} {
		for _, order := range []Order{ClaimFirst, VolumeFirst, AtOnce} {
			choices.Sort, choices.Order, choices.Pod = sort, order, order == ClaimFirst
			name := fmt.Sprintf("%slast-%s-%d", choices.prefix(), sort, len(order))
			lc := u.lifecycle(choices, name, space)
			u.add(lc)
			u.all.Go(func() { u.finish(lc, lc.run(ctx)) })
		}
	}
	for n := range u.world.treeUsers() {
		f := u.beginTree(treeUserCount, n)
		f.name, f.choices = fmt.Sprintf("%slast-%d", choices.prefix(), n), refusedTree(n, choices)
		u.all.Go(func() { u.finish(f.lifecycle, f.run(ctx)) })
	}
}

// refusedTree returns the choices of the n-th tree.
func refusedTree(n int, choices Choices) TreeChoices {
	return TreeChoices{Outcome: outcomes[n%len(outcomes)], Foreground: n%2 == 0,
		Denied: choices.Denied, Undone: choices.Undone}
}
