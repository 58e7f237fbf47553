package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// statusWrites is what this term knows of its writes of the status.
type statusWrites struct {
	at      time.Time
	version string
	message string
	// pending: the watch has to show the last write before the status can be written again.
	pending bool
}

// texts are the sentences of reasons.
var texts = map[teardown.Reason]string{
	teardown.Completed:         "everything to delete is gone",
	teardown.IsProtected:       "spec.protected is true",
	teardown.NotConfirmed:      "spec.confirm and spec.confirmedAt permit nothing",
	teardown.Expired:           "the permission has ended: spec.confirmedAt and spec.timeout",
	teardown.Checking:          "it is being checked whether something refuses",
	teardown.AwaitingDeletion:  "a deletion of this object begins the teardown",
	teardown.DefinitionDeleted: "the CRD of Alive is being deleted, which is no request for a teardown",
	teardown.FinalizerStripped: "finalizer " + alive.Finalizer + " was removed by somebody else",
	teardown.Paused:            "the cluster was restored from a backup: a person has to confirm again",
	teardown.FreezeMissing:     "the freeze is written",
	teardown.FreezePending:     "the freeze is not in force yet",
	teardown.Planning:          "the plan is saved",
	teardown.Keeping:           "kept volumes get the label and the policy Retain",
	teardown.Starting:          "all is prepared",
	teardown.Deleting:          "objects are deleted",
	teardown.Remaining:         "what was deleted is awaited",
	teardown.Settling:          "nothing is left; all lists are read again",
	teardown.Unreadable:        "a kind could not be read yet",
}

// message says what the reason means here.
func (s *session) messageOf(object *alive.Alive, decision teardown.Decision, v view) string {
	switch {
	case decision.Reason == teardown.Keeping:
		return texts[decision.Reason] + s.refusedMark(v)
	case decision.Reason == teardown.NotReady:
		return s.ready.text()
	case decision.Reason == teardown.IsProtected && decision.Phase == teardown.Stopped:
		return texts[decision.Reason] + writerOf(object)
	}
	return texts[decision.Reason]
}

// refusedMark says why a kept volume cannot be marked, "" if nothing but a conflict is known: the teardown waits for it.
func (s *session) refusedMark(v view) string {
	for _, step := range v.steps {
		if last := s.tries[step.UID]; step.Action == inventory.Mark && last.failures > 1 {
			return ", which fails: " + last.err
		}
	}
	return ""
}

// writerOf names who set spec.protected last, by the managed fields (#56).
func writerOf(object *alive.Alive) string {
	for _, entry := range object.ManagedFields {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		if hasField(entry.FieldsV1.GetRawBytes(), "f:spec", "f:protected") {
			at := ""
			if entry.Time != nil {
				at = " at " + entry.Time.UTC().Format(time.RFC3339)
			}
			return fmt.Sprintf(", set by %q%s", entry.Manager, at)
		}
	}
	return ""
}

// writeStatus writes the status if it changes: a new phase or condition at once, numbers from time to time.
func (s *session) writeStatus(ctx context.Context, decision teardown.Decision, v view) error {
	object, _, _ := s.view()
	if s.confirmed != nil {
		object = s.confirmed
	}
	silent := decision.Phase == teardown.NoPhase || decision.Reason == teardown.NotLeading
	if silent || object == nil || object.UID != s.uid {
		return nil
	}
	if decision.Action == teardown.Start {
		return nil // the write of Started has the status; the next round goes on from there
	}
	status := s.statusOf(object, decision, v)
	s.status.message, s.status.pending = status.Message, true
	s.Follow(progressOf(&status, true, v.left()))
	if s.status.version != "" && !newer(object.ResourceVersion, s.status.version) {
		return nil // the watch has not shown our last write
	}
	s.status.pending = false
	if equality.Semantic.DeepEqual(status, object.Status) {
		return nil
	}
	now := s.Clock.Now()
	if next := s.status.at.Add(s.Waits.Status); !isUrgent(&status, &object.Status) && now.Before(next) {
		s.wakeAt(next)
		return nil
	}
	if !s.term.Leading() {
		return errNotLeading
	}
	version, err := s.putStatus(ctx, object, &status)
	if err != nil {
		return err
	}
	s.status.at, s.status.version = now, version
	s.tell(&object.Status, &status)
	return nil
}

// tell makes an event of a new phase, and of a new reason to stop.
func (r *Runner) tell(before, now *alive.Status) {
	switch {
	case now.Phase == alive.Stopped && (before.Phase != now.Phase || before.Reason != now.Reason):
		r.event(v1.EventTypeWarning, string(now.Phase), now.Reason+": "+now.Message)
	case now.Phase != before.Phase:
		r.event(v1.EventTypeNormal, string(now.Phase), now.Message)
	}
}

// putStatus replaces the status of the observed version, and returns the new version.
func (r *Runner) putStatus(ctx context.Context, object *alive.Alive, status *alive.Status) (string, error) {
	body, err := patch.ForVersion(object).Set("/status", status).Bytes()
	if err != nil {
		return "", err
	}
	written, err := r.Dynamic.Resource(alive.Resource).Patch(ctx, alive.Name, types.JSONPatchType, body,
		metav1.PatchOptions{FieldManager: r.Agent}, "status")
	if err != nil {
		return "", fmt.Errorf("write the status of Alive: %w", err)
	}
	return written.GetResourceVersion(), nil
}

// isUrgent reports whether phase, reason or a condition changes.
func isUrgent(now, before *alive.Status) bool {
	return now.Phase != before.Phase || now.Reason != before.Reason && !inPreparation(now.Phase) ||
		!equality.Semantic.DeepEqual(now.Conditions, before.Conditions)
}

// inPreparation: the reasons of these phases are steps of seconds.
func inPreparation(phase alive.Phase) bool {
	return phase == alive.Preparing || phase == alive.TearingDown
}

// statusOf returns the status of the decision. The condition Started is written by start alone.
func (s *session) statusOf(object *alive.Alive, decision teardown.Decision, v view) alive.Status {
	status := object.Status.DeepCopy()
	status.Phase, status.Reason = alive.Phase(decision.Phase), string(decision.Reason)
	status.Message = cut(s.messageOf(object, decision, v))
	if v.listed {
		remains := remainingOf(v.items)
		status.RemainingCount = int64(len(remains))
		status.Remaining = s.explained(remains)
	}
	switch {
	case decision.Reason == teardown.NotReady:
		s.setCondition(&status, object, alive.ConditionReady, metav1.ConditionFalse, s.refusalReason())
	case decision.Phase == teardown.Protected, decision.Phase == teardown.Stopped:
		s.setCondition(&status, object, alive.ConditionReady, metav1.ConditionFalse, status.Reason)
	case decision.Reason == teardown.AwaitingDeletion:
		s.setCondition(&status, object, alive.ConditionReady, metav1.ConditionTrue, "Ready")
	case decision.Phase == teardown.Complete && s.record.complete:
		s.setCondition(&status, object, alive.ConditionComplete, metav1.ConditionTrue, "Completed")
	}
	return status
}

func (s *session) refusalReason() string {
	if len(s.ready.refusals) == 0 {
		return alive.ReasonNotReady
	}
	return s.ready.refusals[0].Reason
}

// maxText bounds the texts of the status.
const maxText = 1000

// cut bounds a text, and makes it valid UTF-8: the API server would store another text than was sent, and each round
// would write it again.
func cut(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	return strings.ToValidUTF8(text, "")
}

// setCondition sets a condition of the observed object.
func (r *Runner) setCondition(status *alive.Status, of *alive.Alive, kind string, value metav1.ConditionStatus, reason string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: value,
		Reason: cmp.Or(reason, "Unknown"), Message: status.Message, ObservedGeneration: of.Generation,
		LastTransitionTime: metav1.NewTime(r.Clock.Now().Truncate(time.Second))})
}

// remainingOf returns the items that the teardown waits for, the oldest first.
func remainingOf(items []teardown.Item) []teardown.Item {
	var remain []teardown.Item
	for _, item := range items {
		if item.Awaited() {
			remain = append(remain, item)
		}
	}
	slices.SortStableFunc(remain, func(a, b teardown.Item) int { return a.Created.Compare(b.Created) })
	return remain
}

// left counts what is left, by kind.
func (v *view) left() map[string]int {
	left := map[string]int{}
	for _, item := range v.items {
		if item.Awaited() {
			left[string(item.Kind)]++
		}
	}
	return left
}

// itemKinds are the kinds of the items of objects.
var itemKinds = map[string]teardown.Kind{"PersistentVolume": teardown.Volume, "PersistentVolumeClaim": teardown.Volume,
	"VolumeSnapshot": teardown.Snapshot, "VolumeSnapshotContent": teardown.Snapshot, "Service": teardown.LoadBalancer,
	"Ingress": teardown.Ingress, "Gateway": teardown.Gateway, alive.Kind: teardown.Participant}

// followedProgress is how far another runner is, as the status says it.
func followedProgress(status *alive.Status) Progress {
	left := map[string]int{}
	for _, one := range status.Remaining {
		left[string(itemKinds[one.Object.Kind])]++
	}
	progress := progressOf(status, false, left)
	progress.More = int(status.RemainingCount) - len(status.Remaining)
	return progress
}

func progressOf(status *alive.Status, leading bool, left map[string]int) Progress {
	return Progress{Phase: teardown.Phase(status.Phase), Reason: teardown.Reason(status.Reason), Message: status.Message,
		Leading: leading, Left: left}
}

const repeated = "a step of the teardown fails, and is repeated: "

// sayFailing shows an error to the person of a command, which prints no log.
func (r *Runner) sayFailing(err error) {
	object, _, _ := r.view()
	if object == nil || !r.Command {
		return
	}
	now := followedProgress(&object.Status)
	now.Phase, now.Leading, now.Message = cmp.Or(now.Phase, teardown.Armed), true, repeated+err.Error()
	r.Follow(now)
}

// reportIdle writes the phase of an Alive that is neither armed nor deleted. alive-controller creates a missing one.
func (r *Runner) reportIdle(ctx context.Context, object *alive.Alive) error {
	if object == nil {
		r.Follow(Progress{})
		if r.Command {
			return nil
		}
		return r.create(ctx)
	}
	reason := r.unpermitted(object)
	return r.report(ctx, object, alive.Protected, string(reason), texts[reason])
}

// unpermitted returns why the spec permits nothing, "" if it does.
func (r *Runner) unpermitted(object *alive.Alive) teardown.Reason {
	word := r.wordOf(object)
	switch {
	case object.IsProtected():
		return teardown.IsProtected
	case word == teardown.ExpiredWord:
		return teardown.Expired
	case word != teardown.ValidWord:
		return teardown.NotConfirmed
	}
	return ""
}

// reportRights says which rights this process lacks, once for each change of Alive. Where another runner has found the
// cluster ready, or works, the status is that runner's: without this, both would write it again and again.
func (r *Runner) reportRights(ctx context.Context, object *alive.Alive, lacking []string) error {
	ready := meta.FindStatusCondition(object.Status.Conditions, alive.ConditionReady)
	told := ready != nil && (ready.Status == metav1.ConditionTrue || ready.ObservedGeneration == object.Generation)
	phase := object.Status.Phase
	if told || phase == alive.Preparing || phase == alive.TearingDown || phase == alive.Complete {
		r.Follow(followedProgress(&object.Status))
		return nil
	}
	phase = alive.Armed
	if object.IsDeleted() {
		phase = alive.Stopped
	}
	if reason := r.unpermitted(object); reason != "" {
		return r.report(ctx, object, phase, string(reason), texts[reason])
	}
	return r.report(ctx, object, phase, alive.ReasonRightsMissing, fmt.Sprintf(
		"%s may not delete: kubectl apply -k deploy/alive/armed gives it the right; it lacks %s", r.Agent, lacking[0]))
}

// report writes phase and condition Ready, False, of an Alive that is not torn down, if they change.
func (r *Runner) report(ctx context.Context, object *alive.Alive, phase alive.Phase, reason, message string) error {
	status := object.Status.DeepCopy()
	status.Phase, status.Reason, status.Message = phase, reason, cut(message)
	r.setCondition(&status, object, alive.ConditionReady, metav1.ConditionFalse, reason)
	r.Follow(progressOf(&status, false, nil))
	if equality.Semantic.DeepEqual(status, object.Status) {
		return nil
	}
	_, err := r.putStatus(ctx, object, &status)
	if patch.IsStale(err) { // the watch brings the newer one
		return nil
	}
	return err
}
