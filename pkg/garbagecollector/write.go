package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/garbage"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// outcome is what became of a write.
type outcome int

const (
	// done: nothing more is to be done before the next event.
	done outcome = iota
	// again: the object is to be judged again at once.
	again
	// conflict: the object has changed; it was read live and is to be judged again.
	conflict
)

var policies = map[garbage.Action]metav1.DeletionPropagation{
	garbage.DeleteBackground: metav1.DeletePropagationBackground,
	garbage.DeleteForeground: metav1.DeletePropagationForeground,
	garbage.DeleteOrphan:     metav1.DeletePropagationOrphan,
}

// writer deletes and patches objects, each only as it was judged: it delays and confirms a write until it is sent, and
// finds out what a failure means. It has no mutex of its own.
type writer struct {
	*sharedGraph
	restore *restore
	watches *watches
	live    *liveReads
	sender  *sender
	// limiter delays a write before the last check of its judgement.
	limiter  flowcontrol.RateLimiter
	throttle *Throttle
	slow     *slowKinds
	// repeats delays writes that somebody undoes; nil for never.
	repeats *controller.Repeats
}

func newWriter(config *Config, watches *watches, live *liveReads, metrics *counters) *writer {
	known := watches.sharedGraph
	sender := &sender{sharedGraph: known, watches: watches, client: config.REST, metrics: metrics, dryRun: config.DryRun}
	return &writer{
		sharedGraph: known, restore: watches.restore, watches: watches, live: live, sender: sender, limiter: config.Limiter,
		throttle: config.Throttle, slow: newSlowKinds(config.Clock), repeats: &controller.Repeats{},
	}
}

// attempt is what happened to the writes of one object before the one that is about to be sent.
type attempt struct {
	// conflicts are the writes that failed because the object had changed.
	conflicts int
	// admitted: the rate limit admitted a write, which is not sent yet.
	admitted bool
}

// writeRequest is a write that is not sent yet.
type writeRequest struct {
	verb string
	// effect is what the write changes: equal effects are repeats.
	effect []byte
	// confirm returns done if the write is still right.
	confirm func() (outcome, error)
	send    func() error
}

// delete deletes the object if it is as judged. Where the API server does not compare the version, a live
// read does, once nothing else delays the deletion.
func (w *writer) delete(ctx context.Context, j graph.Judgement, action garbage.Action, a *attempt) (outcome, error) {
	confirm := func() (outcome, error) { return w.confirmDeletion(ctx, &j, action, a) }
	send := func() error { return w.sender.delete(ctx, j, policies[action], a.conflicts) }
	return w.write(ctx, &j, a, writeRequest{"delete", []byte("delete " + policies[action]), confirm, send})
}

// patch applies the patch if the object is as judged, and records the result.
func (w *writer) patch(ctx context.Context, j graph.Judgement, a *attempt, r removal) (outcome, error) {
	confirm := func() (outcome, error) { return w.confirmPatch(ctx, j, r) }
	send := func() error { return w.sender.patch(ctx, j, r) }
	return w.write(ctx, &j, a, writeRequest{r.verb, w.effectOf(j, r.verb), confirm, send})
}

// write sends a write once nothing delays it and it is confirmed. Of a slow kind, one is on its way at a time, and
// the others take nothing of the rate limit and read nothing.
func (w *writer) write(ctx context.Context, j *graph.Judgement, a *attempt, r writeRequest) (next outcome, err error) {
	if err := w.checkRepeats(j.UID, r.effect); err != nil {
		return done, err
	}
	sent := false
	err = w.slow.limit(j.Kind, func() (began time.Time, err error) {
		if expired, err := w.admit(ctx, *j, a); expired || err != nil {
			next = again
			return time.Time{}, err
		}
		if next, err = r.confirm(); next != done || err != nil {
			return time.Time{}, err
		}
		a.admitted, sent = false, true
		return w.clock.Now(), r.send()
	})
	if sent && err != nil {
		next, err = w.recover(ctx, r.verb, j.Object, err)
	}
	if sent && (err == nil && next == done || isRefusal(err) || errors.Is(err, controller.ErrTooManySteps)) {
		w.recordRepeats(j.UID, r.effect)
	}
	return next, err
}

// admit waits for the rate limit, once for each write that is sent, and for the end of an overload. It
// returns true if the judgement has expired meanwhile.
func (w *writer) admit(ctx context.Context, j graph.Judgement, a *attempt) (expired bool, err error) {
	if w.limiter != nil && !a.admitted {
		if err := w.limiter.Wait(ctx); err != nil {
			return false, fmt.Errorf("wait for --kube-api-qps: %w", err)
		}
	}
	a.admitted = true
	if err := w.throttle.Wait(ctx); err != nil {
		return false, err
	}
	// etcd was restored from a backup: owners that the graph takes for absent may exist again, with their dependents.
	if w.restore.isRestored() {
		return false, ErrRestored
	}
	return w.hasExpired(j), nil
}

// hasExpired reports whether the live reads of the judgement are too old. During the delay, an owner that waits for its
// dependents may have got the policy Orphan: dependents that its user wants to keep would be deleted.
func (w *writer) hasExpired(j graph.Judgement) bool {
	return !j.Expires.IsZero() && !w.clock.Now().Before(j.Expires)
}

// confirmDeletion returns done if the deletion may be sent.
func (w *writer) confirmDeletion(
	ctx context.Context, j *graph.Judgement, action garbage.Action, a *attempt,
) (outcome, error) {
	switch {
	// An owner whose end the graph saw may be back: etcd was restored since, with a raised revision, so that no version is
	// older than before. Its dependents are not garbage, and would be deleted with all that depends on them.
	case len(j.Unproven) > 0:
		return w.proveAbsence(ctx, *j)
	// The deletion will name no version, so that the API server does not notice that the object has got another owner
	// since. It is judged by a read right before, or an object of an owner that lives is deleted.
	case a.conflicts >= maxConflicts:
		if same, err := w.judgeLive(ctx, j, action); err != nil || !same {
			return again, err
		}
	// An aggregated API server may ignore the version in the preconditions, and delete an object which another owner has
	// adopted since it was judged.
	case w.watches.mayIgnorePreconditions(j.Kind):
		if unchanged, err := w.live.isUnchanged(ctx, j.Object); err != nil || !unchanged {
			return conflict, err
		}
		if w.hasExpired(*j) { // the read took long
			return again, nil
		}
	}
	return done, nil
}

// confirmPatch returns done if the patch may be sent.
func (w *writer) confirmPatch(ctx context.Context, j graph.Judgement, r removal) (outcome, error) {
	switch {
	// An owner that is back after a restore must keep its reference: without it, the object outlives the owner for ever.
	case len(j.Unproven) > 0 && len(j.Remove) > 0:
		return w.proveAbsence(ctx, j)
	// Dependents that come during a delay do not change the version of their owner. Without its finalizer the owner would
	// be gone before them: with the policy Orphan, they would then be deleted as garbage.
	case r.still != nil && !r.still():
		return again, nil
	}
	return done, nil
}

// proveAbsence reads the absent owners live that were not read within a second, so that the object is judged again by
// these reads: owners share one read a second.
func (w *writer) proveAbsence(ctx context.Context, j graph.Judgement) (outcome, error) {
	return again, w.live.verifyOwners(ctx, j.Unproven)
}

// judgeLive reads the object live and judges it again. It reports whether the action is still the one to be taken.
func (w *writer) judgeLive(ctx context.Context, j *graph.Judgement, action garbage.Action) (bool, error) {
	if err := w.live.verifyObject(ctx, j.Object); err != nil {
		return false, err
	}
	now, found := w.judge(j.UID)
	if !found || garbage.Decide(now.State).Action != action || w.hasExpired(now) || len(now.Unproven) > 0 {
		return false, nil
	}
	*j = now
	return true, nil
}

// recover returns what to do after a failed write. The error proves nothing about the object: an admission webhook
// chooses code and names of its denial. If a denial counted as the end of a dependent, its owner would be released too
// early. A live read tells whether the object is gone, has changed, or the write was refused.
func (w *writer) recover(ctx context.Context, verb string, object graph.Object, err error) (outcome, error) {
	failed := fmt.Errorf("%s %s %s/%s: %w", verb, object.Kind.GroupResource(), object.Namespace, object.Name, err)
	if !answer.NeedsRead(err) {
		return done, failed
	}
	switch unchanged, err := w.live.isUnchanged(ctx, object); {
	case err != nil:
		return done, errors.Join(failed, err)
	case unchanged:
		return done, failed
	}
	return conflict, nil
}

// isRefusal reports whether the API server, or a webhook, refused a write.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
}

// effectOf returns what a patch of the object changes: which references, or which finalizer, it removes.
func (w *writer) effectOf(j graph.Judgement, verb string) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	effect := []byte(verb)
	for _, owner := range w.graph.OwnersAt(j.UID, j.Remove) {
		effect = append(append(effect, ' '), owner...)
	}
	return effect
}

// checkRepeats returns an error if the write has to wait, because equal ones had no lasting effect: a webhook refuses
// or undoes them, and each event of the object would send another one.
func (w *writer) checkRepeats(uid types.UID, effect []byte) error {
	if w.repeats == nil {
		return nil
	}
	return w.repeats.Check(uid, effect)
}

func (w *writer) recordRepeats(uid types.UID, effect []byte) {
	if w.repeats != nil {
		w.repeats.Record(uid, effect)
	}
}
