package storage

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// attachmentGroup is the API group of VolumeAttachments.
const attachmentGroup = "storage.k8s.io"

// explainAttachment returns what the deletion of a VolumeAttachment waits for.
func explainAttachment(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	s, ok := newSubject[storagev1.VolumeAttachment](e, object)
	if !ok {
		return chain.FinalizerBlockers(ctx, e, object)
	}
	return s.finalizers(ctx, func(name string) ([]blocker.Blocker, bool) {
		if !strings.HasPrefix(name, attacherPrefix) {
			return nil, false
		}
		judgment, finding, facts := judgeAttachment(ctx, e, s.typed)
		b := blocker.Blocker{Object: cluster.ObjectOf(object), Finalizer: name, Since: askedAt(object), Evidence: facts}
		return []blocker.Blocker{attachmentText(e, judged(b, judgment, finding), s.typed, nil)}, true
	})
}

// judgeAttachment returns why the volume stays attached.
func judgeAttachment(ctx context.Context, e chain.Explorer,
	attachment *storagev1.VolumeAttachment) (volume.Judgment, holder.Finding, []blocker.Evidence) {
	finding := look(ctx, e, attacherPrefix+attachment.Spec.Attacher, "VolumeAttachment", attachmentGroup,
		attachment.Spec.Attacher)
	node, presence := cluster.Get(ctx, e.Reader(), cluster.Nodes, "", attachment.Spec.NodeName)
	facts := []blocker.Evidence{evidence(blocker.FromField, "VolumeAttachment %s attaches the volume to node %s",
		attachment.Name, attachment.Spec.NodeName)}
	s := volume.AttachmentState{Deleting: attachment.DeletionTimestamp != nil, Attacher: finding.State}
	switch {
	case presence == cluster.Absent:
		s.Node = volume.No
		facts = append(facts, evidence(blocker.FromField, "there is no node %s", attachment.Spec.NodeName))
	case node != nil:
		s.Node = volume.Yes
		facts = append(facts, nodeEvidence(node))
	}
	if failed := attachment.Status.DetachError; failed != nil {
		s.Error = (failed.Time.IsZero() || isRecent(e.Reader(), failed.Time.Time)) && volume.IsRefusal(failed.Message)
		facts = append(facts, evidence(blocker.FromField, "status.detachError of %s: %s", blocker.Time(failed.Time.Time),
			failed.Message))
	}
	return volume.Attachment(s), finding, facts
}

func nodeEvidence(node *corev1.Node) blocker.Evidence {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return evidence(blocker.FromCondition, "node %s: Ready is %s since %s", node.Name, condition.Status,
				blocker.Time(condition.LastTransitionTime.Time))
		}
	}
	return evidence(blocker.FromField, "node %s exists", node.Name)
}

// attachmentText sets the next step of a blocker of an attachment. pods are pods on the node
// that use the volume.
func attachmentText(e chain.Explorer, b blocker.Blocker, attachment *storagev1.VolumeAttachment,
	pods []corev1.Pod) blocker.Blocker {
	commands, node := e.Commands(), attachment.Spec.NodeName
	switch b.Reason {
	case blocker.VolumeAttached:
		b.Holder = "the attach/detach controller of kube-controller-manager, and the attacher of " + attachment.Spec.Attacher
		b.Next = cluster.Steps("the volume is detached once no pod on the node uses it",
			commands.Kubectl("", "get", "pods", "--all-namespaces", "--field-selector", "spec.nodeName="+node))
	case blocker.DetachFailed:
		b.Next = cluster.Steps("the driver cannot detach the volume from node "+node+
			": mend what its error says. The attacher retries",
			commands.Kubectl("", "describe", "volumeattachment", attachment.Name))
	case blocker.NodeGone:
		b.Object = blocker.Object{Kind: "Node", Name: node}
		b.Holder = "the administrator of node " + node
		var deletions []string
		for _, pod := range pods {
			if isDeleted(&pod) { // explained itself
				continue
			}
			deletions = append(deletions, commands.Kubectl(pod.Namespace, "delete", "pod", pod.Name))
		}
		deletions = append(deletions, commands.Kubectl("", "delete", "volumeattachment", attachment.Name))
		b.Next = cluster.Steps("find out whether the machine of node "+node+
			" runs: if so, start its kubelet again, which ends the use of the volume",
			commands.Kubectl("", "get", "pods", "--all-namespaces", "--field-selector", "spec.nodeName="+node)) + "\n" +
			cluster.LastResort("only if you saw that the machine is switched off: a machine that runs writes to the volume",
				deletions...)
	default: // the finding has the next step of controllers
	}
	return b
}

// attachments returns the attachments of the volume, and whether all were seen.
func (c *volumeChain) attachments(ctx context.Context) ([]storagev1.VolumeAttachment, bool) {
	all, seen := cluster.List(ctx, c.Reader(), cluster.VolumeAttachments, cluster.Selection{})
	var found []storagev1.VolumeAttachment
	for _, attachment := range all {
		if c.isAttachedBy(attachment.Spec) {
			found = append(found, attachment)
		}
	}
	return found, seen
}

// isAttachedBy reports whether the attachment names the volume, or its disk as an inline volume.
func (c *volumeChain) isAttachedBy(spec storagev1.VolumeAttachmentSpec) bool {
	if name := spec.Source.PersistentVolumeName; name != nil {
		return *name == c.typed.Name
	}
	inline, own := spec.Source.InlineVolumeSpec, c.typed.Spec.CSI
	return inline != nil && inline.CSI != nil && own != nil && inline.CSI.Driver == own.Driver &&
		inline.CSI.VolumeHandle == own.VolumeHandle
}

// attachedTo returns a blocker for each attachment, with what keeps the attachment.
func (c *volumeChain) attachedTo(ctx context.Context, attachments []storagev1.VolumeAttachment,
	name string) []blocker.Blocker {
	var all []blocker.Blocker
	for i := range attachments {
		all = append(all, c.attached(ctx, &attachments[i], name))
	}
	return all
}

func (c *volumeChain) attached(ctx context.Context, attachment *storagev1.VolumeAttachment,
	name string) blocker.Blocker {
	judgment, finding, facts := judgeAttachment(ctx, c, attachment)
	object := blocker.Object{Kind: "VolumeAttachment", Group: attachmentGroup, Name: attachment.Name,
		UID: string(attachment.UID)}
	pods := c.podsOn(ctx, attachment.Spec.NodeName)
	b := blocker.Blocker{
		Object: object, Finalizer: name, Reason: blocker.VolumeAttached, Verdict: min(judgment.Verdict, blocker.Unknown),
		Since: askedAt(attachment), Evidence: facts,
	}
	using := make([]*corev1.Pod, len(pods))
	for i := range pods {
		using[i] = &pods[i]
	}
	b.Blockers = podBlockers(ctx, c, using, "")
	switch judgment.Reason {
	case blocker.ControllerActs: // the attacher detaches
		b.Evidence = append(b.Evidence, finding.Evidence...)
	case blocker.VolumeAttached, blocker.ControllerUnseen:
	default:
		cause := judged(blocker.Blocker{Object: object, Since: askedAt(attachment), Evidence: facts}, judgment, finding)
		b.Blockers = append(b.Blockers, attachmentText(c, cause, attachment, pods))
	}
	return attachmentText(c, b, attachment, pods)
}

// podsOn returns the pods on the node that use the claim of the volume.
func (c *volumeChain) podsOn(ctx context.Context, node string) []corev1.Pod {
	if c.claim == nil {
		return nil
	}
	claim, ok := newSubject[corev1.PersistentVolumeClaim](c, c.claim)
	if !ok {
		return nil
	}
	all, _ := cluster.PodsWithClaims(ctx, c.Reader(), claim.typed.Namespace)
	var found []corev1.Pod
	for i := range all {
		if all[i].Spec.NodeName == node && protection.Uses(&all[i], claim.typed) {
			found = append(found, all[i])
		}
	}
	return found
}
