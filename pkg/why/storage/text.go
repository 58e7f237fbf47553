package storage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// recently is how long an error that was reported counts as an error of now.
const recently = 10 * time.Minute

// askedAt returns when the deletion of the object was asked for, "" if it was not.
func askedAt(object metav1.Object) string { return blocker.Time(deadline.Of(object).Requested()) }

// WaitsSince returns since when the object waits for its deletion, or for that of its disk, "" if it does not.
func WaitsSince(object *unstructured.Unstructured) string {
	if asked := askedAt(object); asked != "" || object.GetKind() != "PersistentVolume" {
		return asked
	}
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "persistentVolumeReclaimPolicy")
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	if policy != string(corev1.PersistentVolumeReclaimDelete) || phase != string(corev1.VolumeReleased) &&
		phase != string(corev1.VolumeFailed) {
		return ""
	}
	since, _, _ := unstructured.NestedString(object.Object, "status", "lastPhaseTransitionTime")
	return since
}

// evidence returns one piece of evidence.
func evidence(source blocker.Source, format string, values ...any) blocker.Evidence {
	return blocker.Evidence{Source: source, Text: fmt.Sprintf(format, values...)}
}

// giveUp returns a step that shows an object, with the deletion of the object as the last resort:
// whoever pastes the step loses nothing.
func giveUp(e chain.Explorer, sentence, loss, namespace, resource, name string) string {
	commands := e.Commands()
	return cluster.Steps(sentence, commands.Kubectl(namespace, "get", resource, name)) + "\n" +
		cluster.LastResort(loss, commands.Kubectl(namespace, "delete", resource, name))
}

// isRecent reports whether an error of that time is one of now.
func isRecent(r *cluster.Reader, at time.Time) bool { return r.Now().Sub(at) <= recently }

// toUnstructured returns a typed object as the explorer takes it.
func toUnstructured(apiVersion, kind string, typed any) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: fields}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	return object, nil
}

// eventText returns the event as evidence.
func eventText(event corev1.Event) string {
	count := event.Count
	if event.Series != nil {
		count = event.Series.Count
	}
	return fmt.Sprintf("%s, %s, last at %s: %s", event.Reason, terminal.Times(count),
		blocker.Time(cluster.EventTime(event)), event.Message)
}

// retained returns the blocker, which blocks nothing, of a volume that its policy keeps.
func (c *volumeChain) retained() blocker.Blocker {
	b := c.blocker("")
	b.Reason, b.Verdict = blocker.PolicyRetain, blocker.None
	b.Holder = "the administrator, who keeps the volume"
	b.Evidence = []blocker.Evidence{
		evidence(blocker.FromField, "spec.persistentVolumeReclaimPolicy is %s", c.typed.Spec.PersistentVolumeReclaimPolicy),
		evidence(blocker.FromField, "status.phase is %s, and nobody has deleted the PersistentVolume", c.typed.Status.Phase),
	}
	b.Next = giveUp(c, "nothing waits", "this forgets the disk, which stays in storage", "", "pv", c.typed.Name)
	return b
}

// claimed returns the blockers of a volume whose claim exists.
func (c *volumeChain) claimed(ctx context.Context) []blocker.Blocker {
	claim := c.typed.Spec.ClaimRef
	loss, late := c.consequence(ctx)
	b := blocker.Blocker{
		Object: cluster.ObjectOf(c.claim), Finalizer: c.keeper(), Reason: blocker.ClaimExists, Verdict: blocker.Waiting,
		Holder: fmt.Sprintf("the user of claim %s/%s", claim.Namespace, claim.Name), Since: askedAt(c.object),
		Evidence: []blocker.Evidence{
			evidence(blocker.FromField, "spec.claimRef names claim %s/%s with UID %s, which exists", claim.Namespace, claim.Name,
				claim.UID),
			evidence(blocker.FromField, "status.phase is %s", c.typed.Status.Phase),
		},
		Next: giveUp(c, "the volume goes once its claim is deleted", loss, claim.Namespace, "pvc", claim.Name),
	}
	if c.claim.GetDeletionTimestamp() != nil {
		b.Evidence = append(b.Evidence, evidence(blocker.FromField, "the claim was deleted at %s", askedAt(c.claim)))
		b.Next = cluster.Steps("the claim is being deleted. See what it waits for",
			c.Commands().Exeunt(claim.Namespace, "why", "pvc/"+claim.Name))
		b.Blockers = c.Explain(ctx, c.claim)
	}
	return append([]blocker.Blocker{b}, late...)
}

// consequence says what happens to the data once the claim is deleted, with the blocker of a
// volume whose disk stays behind against its policy.
func (c *volumeChain) consequence(ctx context.Context) (string, []blocker.Blocker) {
	switch policy := c.typed.Spec.PersistentVolumeReclaimPolicy; {
	case policy != corev1.PersistentVolumeReclaimDelete:
		return fmt.Sprintf("its policy is %s: this keeps the disk in storage, and no PersistentVolume names the disk any more", policy), nil
	case c.isLate():
		return c.late(ctx)
	}
	return "its policy is Delete: this deletes the data", nil
}

// claimUnseen returns the blocker of a bound volume whose claim could not be read.
func (c *volumeChain) claimUnseen() blocker.Blocker {
	claim := c.typed.Spec.ClaimRef
	return blocker.Blocker{
		Object: blocker.Object{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
			UID: string(claim.UID)},
		Finalizer: c.keeper(), Reason: blocker.ClaimExists, Verdict: blocker.Unknown, Since: askedAt(c.object),
		Evidence: []blocker.Evidence{evidence(blocker.FromField,
			"spec.claimRef names claim %s/%s, which could not be read; status.phase is %s", claim.Namespace, claim.Name, c.typed.Status.Phase)},
		Next: c.Commands().Kubectl(claim.Namespace, "get", "pvc", claim.Name),
	}
}
