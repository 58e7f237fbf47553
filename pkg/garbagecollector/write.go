package garbagecollector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/garbage"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// maxConflicts is the number of conflicts after which a deletion names the UID only, right
// after a live read: other fields may change all the time.
const maxConflicts = 3

// acceptMetadata has a write answered with the metadata of the object. An aggregated API server
// may answer with the whole object.
const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// errOtherObject means that nothing is known of the outcome of a write.
var errOtherObject = errors.New("the answer is about another object")

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

// delete deletes the object if it is as judged. Where the API server does not compare the version, a live
// read does, once nothing else delays the deletion.
func (c *Collector) delete(ctx context.Context, j graph.Judgement, action garbage.Action, t *turn) (outcome, error) {
	confirm := func() (outcome, error) {
		if len(j.Unproven) > 0 {
			return c.proveAbsence(ctx, j)
		}
		return c.confirm(ctx, &j, action, t)
	}
	send := func() error { return c.sendDeletion(ctx, j, policies[action], t) }
	return c.write(ctx, &j, t, writeRequest{"delete", []byte("delete " + policies[action]), confirm, send})
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

// write sends a write once nothing delays it and it is confirmed. Of a slow kind, one is on its way at a time, and
// the others take nothing of the rate limit and read nothing.
func (c *Collector) write(ctx context.Context, j *graph.Judgement, t *turn, r writeRequest) (next outcome, err error) {
	if err := c.checkRepeats(j.UID, r.effect); err != nil {
		return done, err
	}
	sent := false
	err = c.slowWrites.limit(j.Kind, func() (began time.Time, err error) {
		if expired, err := c.admit(ctx, *j, t); expired || err != nil {
			next = again
			return time.Time{}, err
		}
		if next, err = r.confirm(); next != done || err != nil {
			return time.Time{}, err
		}
		t.admitted, sent = false, true
		return c.Clock.Now(), r.send()
	})
	if sent && err != nil {
		next, err = c.recover(ctx, r.verb, j.Object, err)
	}
	if sent && (err == nil && next == done || isRefusal(err)) {
		c.recordRepeats(j.UID, r.effect)
	}
	return next, err
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
func (c *Collector) effectOf(j graph.Judgement, verb string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	effect := []byte(verb)
	for _, owner := range c.graph.OwnersAt(j.UID, j.Remove) {
		effect = append(append(effect, ' '), owner...)
	}
	return effect
}

// checkRepeats returns an error if the write has to wait, because equal ones had no lasting effect: a webhook refuses
// or undoes them, and each event of the object would send another one.
func (c *Collector) checkRepeats(uid types.UID, effect []byte) error {
	if c.repeats == nil {
		return nil
	}
	return c.repeats.Check(uid, effect)
}

func (c *Collector) recordRepeats(uid types.UID, effect []byte) {
	if c.repeats != nil {
		c.repeats.Record(uid, effect)
	}
}

// sendDeletion sends a DELETE, and records the answer.
func (c *Collector) sendDeletion(ctx context.Context, j graph.Judgement, policy metav1.DeletionPropagation, t *turn) error {
	if c.DryRun {
		c.logDry(ctx, "delete", j.Object, string(policy))
		c.change(func(g *graph.Graph) { g.Sent(j.UID, j.Version) })
		return nil
	}
	body, err := json.Marshal(deleteOptions(j, policy, t.conflicts))
	if err != nil {
		return fmt.Errorf("encode options: %w", err)
	}
	request := c.REST.Delete().AbsPath(path(j.Object)...).SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", acceptMetadata).Body(body)
	result := c.send(ctx, request)
	if err := result.Error(); err != nil {
		return err
	}
	answer, err := result.Get()
	if err == nil && isAboutOther(answer, j.UID) {
		return errOtherObject
	}
	c.metrics.deleted.WithLabelValues(string(policy)).Inc()
	gone := err == nil && c.provesGone(answer, j) && (t.conflicts < maxConflicts || !isStatus(answer))
	c.change(func(g *graph.Graph) {
		if gone {
			g.Deleted(j.UID, j.Coordinates())
			return
		}
		g.Sent(j.UID, j.Version)
	})
	return nil
}

// provesGone reports whether the success of a write proves that the object is gone. That of an aggregated API server,
// which may carry the write out later or not at all, does not: the event follows.
func (c *Collector) provesGone(answer runtime.Object, j graph.Judgement) bool {
	return saysGone(answer, j.UID) && !c.mayIgnorePreconditions(j.Kind)
}

// isAboutOther reports whether the answer to a write is another object.
func isAboutOther(answer runtime.Object, uid types.UID) bool {
	if isStatus(answer) {
		return false
	}
	object, err := meta.Accessor(answer)
	return err == nil && object.GetUID() != uid
}

// confirm reads the object live if the API server does not compare its version. It returns done if the
// deletion may be sent.
func (c *Collector) confirm(ctx context.Context, j *graph.Judgement, action garbage.Action, t *turn) (outcome, error) {
	switch {
	case t.conflicts >= maxConflicts:
		if same, err := c.judgeLive(ctx, j, action); err != nil || !same {
			return again, err
		}
	case c.mayIgnorePreconditions(j.Kind):
		if unchanged, err := c.isUnchanged(ctx, j.Object); err != nil || !unchanged {
			return conflict, err
		}
		if c.hasExpired(*j) {
			return again, nil
		}
	}
	return done, nil
}

// deleteOptions returns the options of a deletion after a number of conflicts.
func deleteOptions(j graph.Judgement, policy metav1.DeletionPropagation, conflicts int) metav1.DeleteOptions {
	options := metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{UID: &j.UID, ResourceVersion: &j.Version},
		PropagationPolicy: &policy,
	}
	if conflicts >= maxConflicts {
		options.Preconditions.ResourceVersion = nil
	}
	return options
}

// proveAbsence reads the absent owners live that were not read within a second, so that the object is judged again by
// these reads: owners share one read a second.
func (c *Collector) proveAbsence(ctx context.Context, j graph.Judgement) (outcome, error) {
	return again, c.verifyOwners(ctx, j.Unproven)
}

// isStatus reports whether a write was answered with a status. A deletion without a version as precondition is
// answered so, too, if the object was being deleted within its grace period already, and exists.
func isStatus(answer runtime.Object) bool {
	_, is := answer.(*metav1.Status)
	return is
}

// saysGone reports whether the answer to a write says that no object with the UID is left: a
// deletion is answered with a status once nothing keeps the object, with the object else; and
// the object whose last finalizer was removed is gone. A namespace has no grace period, and
// finalizers in its spec.
func saysGone(answer runtime.Object, uid types.UID) bool {
	if status, is := answer.(*metav1.Status); is {
		return status.Status == metav1.StatusSuccess && status.Details != nil && status.Details.UID == uid
	}
	object, err := meta.Accessor(answer)
	if err != nil || object.GetUID() != uid || object.GetDeletionTimestamp() == nil || len(object.GetFinalizers()) > 0 {
		return false
	}
	grace := object.GetDeletionGracePeriodSeconds()
	return grace != nil && *grace == 0
}

// patch applies the patch if the object is as judged, and records the result.
func (c *Collector) patch(ctx context.Context, j graph.Judgement, t *turn, verb string, operations *patch.Patch) (outcome, error) {
	confirm := func() (outcome, error) {
		switch {
		case len(j.Unproven) > 0 && len(j.Remove) > 0:
			return c.proveAbsence(ctx, j)
		case t.still != nil && !t.still():
			return again, nil
		}
		return done, nil
	}
	send := func() error { return c.sendPatch(ctx, j, verb, operations) }
	return c.write(ctx, &j, t, writeRequest{verb, c.effectOf(j, verb), confirm, send})
}

// sendPatch sends a PATCH, and records the answer.
func (c *Collector) sendPatch(ctx context.Context, j graph.Judgement, verb string, operations *patch.Patch) error {
	if c.DryRun {
		c.logDry(ctx, verb, j.Object, "")
		return nil
	}
	body, err := operations.Bytes()
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	result := c.send(ctx, c.REST.Patch(types.JSONPatchType).AbsPath(path(j.Object)...).SetHeader("Accept", acceptMetadata).Body(body))
	if err := result.Error(); err != nil {
		return err
	}
	written, err := result.Get()
	if err == nil && isAboutOther(written, j.UID) {
		return errOtherObject
	}
	c.metrics.patched.WithLabelValues(verb).Inc()
	if err == nil {
		c.recordWritten(j, written)
	}
	return nil
}

// recordWritten records the answer to a patch.
func (c *Collector) recordWritten(j graph.Judgement, written runtime.Object) {
	partial, ok := written.(*metav1.PartialObjectMetadata)
	switch {
	case !ok:
	case c.provesGone(partial, j):
		c.change(func(g *graph.Graph) { g.Deleted(j.UID, j.Coordinates()) })
	default:
		c.change(func(g *graph.Graph) { g.Refresh(j.Kind, partial) })
	}
}

// admit waits for the rate limit, once for each write that is sent, and for the end of an overload. It
// returns true if the judgement has
// expired meanwhile.
func (c *Collector) admit(ctx context.Context, j graph.Judgement, t *turn) (expired bool, err error) {
	if c.Limiter != nil && !t.admitted {
		if err := c.Limiter.Wait(ctx); err != nil {
			return false, fmt.Errorf("wait for --kube-api-qps: %w", err)
		}
	}
	t.admitted = true
	if err := c.Throttle.Wait(ctx); err != nil {
		return false, err
	}
	if c.isRestored() {
		return false, ErrRestored
	}
	return c.hasExpired(j), nil
}

// hasExpired reports whether the live reads of the judgement are too old.
func (c *Collector) hasExpired(j graph.Judgement) bool {
	return !j.Expires.IsZero() && !c.Clock.Now().Before(j.Expires)
}

// judgeLive reads the object live and judges it again. It reports whether the action is still the one to be taken.
func (c *Collector) judgeLive(ctx context.Context, j *graph.Judgement, action garbage.Action) (bool, error) {
	if err := c.verifyObject(ctx, j.Object); err != nil {
		return false, err
	}
	now, found := c.judge(j.UID)
	if !found || garbage.Decide(now.State).Action != action || c.hasExpired(now) || len(now.Unproven) > 0 {
		return false, nil
	}
	*j = now
	return true, nil
}

// recover returns what to do after a failed write. The error proves nothing about the object: an admission webhook
// chooses code and names of its denial. A live read tells whether the object is gone, has changed, or the write was
// refused.
func (c *Collector) recover(ctx context.Context, verb string, object graph.Object, err error) (outcome, error) {
	failed := fmt.Errorf("%s %s %s/%s: %w", verb, object.Kind.GroupResource(), object.Namespace, object.Name, err)
	if !apierrors.IsNotFound(err) && !patch.IsStale(err) {
		return done, failed
	}
	switch unchanged, err := c.isUnchanged(ctx, object); {
	case err != nil:
		return done, errors.Join(failed, err)
	case unchanged:
		return done, failed
	}
	return conflict, nil
}

func (c *Collector) logDry(ctx context.Context, verb string, object graph.Object, policy string) {
	klog.FromContext(ctx).Info("Dry run: no write", "verb", verb, "resource", object.Kind.GroupResource(), "object", klog.KRef(object.Namespace, object.Name), "uid", object.UID, "policy", policy)
}

// guarded returns a patch that applies to this version of the object only.
func guarded(object graph.Object) *patch.Patch {
	return patch.ForVersion(&metav1.ObjectMeta{UID: object.UID, ResourceVersion: object.Version})
}

// removeReferences returns a patch that removes the references at the places.
func removeReferences(object graph.Object, places []int) *patch.Patch {
	p := guarded(object)
	for i := range places {
		p.Remove("/metadata/ownerReferences/" + strconv.Itoa(places[len(places)-1-i]))
	}
	return p
}

// removeFinalizer returns a patch that removes the finalizer at the place.
func removeFinalizer(object graph.Object, place int, finalizer string) *patch.Patch {
	at := "/metadata/finalizers/" + strconv.Itoa(place)
	return guarded(object).Test(at, finalizer).Remove(at)
}

// writeTimeout bounds a write. A webhook may take 30 s.
const writeTimeout = 35 * time.Second

// send sends a write without retries, since the judgement would be older than it may be. The outcome of a write that
// is not answered in time is unknown, and the object judged anew.
func (c *Collector) send(ctx context.Context, request *rest.Request) rest.Result {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return request.MaxRetries(0).Do(ctx)
}
