package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// snapshotSource keeps a claim while a snapshot is taken from it.
const snapshotSource = "snapshot.storage.kubernetes.io/pvc-as-source-protection"

// claimChain explains one PersistentVolumeClaim.
type claimChain struct {
	subject[corev1.PersistentVolumeClaim]
}

// explainClaim returns what the deletion of a claim waits for.
func explainClaim(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	s, ok := newSubject[corev1.PersistentVolumeClaim](e, object)
	if !ok {
		return chain.FinalizerBlockers(ctx, e, object)
	}
	c := &claimChain{s}
	return c.finalizers(ctx, func(name string) ([]blocker.Blocker, bool) {
		switch name {
		case string(finalizer.ClaimProtection):
			return c.pods(ctx), true
		case string(finalizer.CloneSource):
			return c.clones(ctx), true
		case snapshotSource:
			return c.snapshots(ctx), true
		}
		return nil, false
	})
}

// blocker returns a blocker at the claim itself.
func (c *claimChain) blocker(name string) blocker.Blocker {
	return blocker.Blocker{Object: cluster.ObjectOf(c.object), Finalizer: name, Since: askedAt(c.object)}
}

// driver returns the CSI driver of the claim, "" if it is not known.
func (c *claimChain) driver(ctx context.Context) string { return driverOfClaim(ctx, c, c.typed) }

// driverOfClaim returns the CSI driver of the claim, "" if it is not known.
func driverOfClaim(ctx context.Context, e chain.Explorer, claim *corev1.PersistentVolumeClaim) string {
	if driver := claim.Annotations[storage.AnnMigratedTo]; driver != "" {
		return driver
	}
	if driver := storage.ClaimProvisioner(claim); driver != "" || storage.ClaimClass(claim) == "" {
		return driver
	}
	class, _ := cluster.Get(ctx, e.Reader(), cluster.StorageClasses, "", storage.ClaimClass(claim))
	if class == nil {
		return ""
	}
	return class.Provisioner
}

// pods returns the pods that use the claim, else the controller that removes pvc-protection.
func (c *claimChain) pods(ctx context.Context) []blocker.Blocker {
	name := string(finalizer.ClaimProtection)
	pods, seen := cluster.PodsWithClaims(ctx, c.Reader(), c.typed.Namespace)
	var using []*corev1.Pod
	var unscheduled []string
	for i := range pods {
		switch {
		case protection.Uses(&pods[i], c.typed):
			using = append(using, &pods[i])
		case slices.Contains(protection.ClaimNames(&pods[i]), c.typed.Name):
			unscheduled = append(unscheduled, pods[i].Name)
		}
	}
	if len(using) > 0 {
		return podBlockers(ctx, c, using, name)
	}
	if !seen {
		return []blocker.Blocker{c.podsUnseen()}
	}
	b := c.Finalizer(ctx, c.object, name)
	text := "no pod uses the claim"
	if len(unscheduled) > 0 {
		text = "no scheduled pod uses the claim; pods that do not count, because no node has them: " +
			strings.Join(unscheduled, ", ")
	}
	b.Evidence = append([]blocker.Evidence{evidence(blocker.FromList, "%s", text)}, b.Evidence...)
	return []blocker.Blocker{b}
}

func (c *claimChain) podsUnseen() blocker.Blocker {
	b := c.blocker(string(finalizer.ClaimProtection))
	b.Reason, b.Verdict = blocker.PodUsesClaim, blocker.Unknown
	b.Evidence = []blocker.Evidence{evidence(blocker.FromList, "the pods of namespace %s could not be listed",
		c.typed.Namespace)}
	b.Next = c.Commands().Kubectl(c.typed.Namespace, "get", "pods")
	return b
}

// podBlocker returns the blocker of a pod that uses a claim, with what the pod waits for.
func podBlocker(ctx context.Context, e chain.Explorer, pod *corev1.Pod, name string) blocker.Blocker {
	b := blocker.Blocker{
		Object:    blocker.Object{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)},
		Finalizer: name, Reason: blocker.PodUsesClaim, Verdict: blocker.Waiting,
		Holder: "pod " + pod.Namespace + "/" + pod.Name, Since: askedAt(pod),
		Evidence: []blocker.Evidence{evidence(blocker.FromField,
			"spec.volumes of the pod names the claim; the pod is %s on node %s", pod.Status.Phase, pod.Spec.NodeName)},
		Next: nextOfPod(ctx, e, pod),
	}
	if pod.DeletionTimestamp == nil {
		return b
	}
	object, err := toUnstructured("v1", "Pod", pod)
	if err != nil {
		e.Reader().Note("could not read pod %s/%s: %v", pod.Namespace, pod.Name, err)
		return b
	}
	b.Blockers = e.Explain(ctx, object)
	return b
}

// clones explains the finalizer of a claim that other claims are cloned from.
func (c *claimChain) clones(ctx context.Context) []blocker.Blocker {
	claims, seen := cluster.List(ctx, c.Reader(), cluster.PersistentVolumeClaims,
		cluster.Selection{Namespace: c.typed.Namespace})
	want := storage.DataSource{Kind: storage.SourceClaim, Namespace: c.typed.Namespace, Name: c.typed.Name}
	users := waitingClaims(claims, want)
	finding := look(ctx, c, string(finalizer.CloneSource), "PersistentVolumeClaim", "", c.driver(ctx))
	s := volume.UseState{Used: volume.FactOf(len(users) > 0, seen), Error: volume.No, Users: finding.State,
		Remover: finding.State}
	facts := []blocker.Evidence{evidence(blocker.FromList, "no claim that is cloned from this claim waits for its volume")}
	if len(users) > 0 {
		facts = claimFacts(users)
		s.Error = c.provisioningFails(ctx, users, &facts)
	}
	b := judged(c.blocker(string(finalizer.CloneSource)), volume.InUse(s, blocker.CloneRunning), finding)
	b.Evidence = append(facts, b.Evidence...)
	switch {
	case len(users) > 0 && b.Reason == blocker.CloneRunning:
		return claimsThatWait(ctx, c, b, users, "wait until the clone has its volume", "this gives the clone up")
	case len(users) > 0 && b.Reason == blocker.ControllerFails:
		b.Next = mendOrGiveUp(c, "the clone cannot be made: mend what the error says; the clone is retried",
			"this gives the clone up", &users[0])
	}
	return []blocker.Blocker{b}
}

// mendOrGiveUp returns the step for a claim whose volume cannot be created.
func mendOrGiveUp(e chain.Explorer, sentence, loss string, claim *corev1.PersistentVolumeClaim) string {
	commands := e.Commands()
	step := cluster.Steps(sentence, commands.Kubectl(claim.Namespace, "describe", "pvc", claim.Name))
	if isDeleted(claim) {
		return step
	}
	return step + "\n" + cluster.LastResort(loss, commands.Kubectl(claim.Namespace, "delete", "pvc", claim.Name))
}

// waitingClaims returns the claims that wait for a volume from the source.
func waitingClaims(claims []corev1.PersistentVolumeClaim, source storage.DataSource) []corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(slices.Clone(claims), func(claim corev1.PersistentVolumeClaim) bool {
		return protection.NeededSource(&claim) != source
	})
}

func claimFacts(claims []corev1.PersistentVolumeClaim) []blocker.Evidence {
	var facts []blocker.Evidence
	for i := range claims {
		facts = append(facts, evidence(blocker.FromField, "claim %s/%s is %s and has this object as its data source",
			claims[i].Namespace, claims[i].Name, claims[i].Status.Phase))
	}
	return facts
}

// provisioningFails reports whether the volume of the first claim cannot be created now.
func (s subject[T]) provisioningFails(ctx context.Context, claims []corev1.PersistentVolumeClaim,
	facts *[]blocker.Evidence) volume.Fact {
	events, seen := cluster.EventsOf(ctx, s.Reader(), "PersistentVolumeClaim", &claims[0])
	last := lastOf(sentBy(events, append(provisioners(), binders()...), driverOfClaim(ctx, s, &claims[0])),
		"ProvisioningFailed", "ProvisioningSucceeded")
	failed := last != nil && last.Reason == "ProvisioningFailed" && isRecent(s.Reader(), cluster.EventTime(*last)) &&
		volume.IsRefusal(last.Message)
	if last != nil {
		*facts = append(*facts, evidence(blocker.FromEvent, "%s", eventText(*last)))
	}
	return volume.FactOf(failed, seen)
}

// nextOfPod returns the next step for a pod that keeps a claim.
func nextOfPod(ctx context.Context, e chain.Explorer, pod *corev1.Pod) string {
	commands := e.Commands()
	if pod.DeletionTimestamp != nil {
		return cluster.Steps("the pod is being deleted. See what it waits for",
			commands.Exeunt(pod.Namespace, "why", "pod/"+pod.Name))
	}
	return cluster.Steps(sentenceOfPod(ctx, e, pod), commands.Kubectl(pod.Namespace, "get", "pod", pod.Name)) + "\n" +
		cluster.LastResort("the claim goes with the pod, and with policy Delete its data",
			commands.Kubectl(pod.Namespace, "delete", "pod", pod.Name))
}

// sentenceOfPod says how the use of the claim ends.
func sentenceOfPod(ctx context.Context, e chain.Explorer, pod *corev1.Pod) string {
	if hasFinished(pod) {
		return "the pod has finished, and counts until it is deleted"
	}
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return "the claim goes once no pod uses it"
	case !createsPods(owner):
		return fmt.Sprintf("%s %s owns the pod and creates no pods: delete the pod, which goes only after its owner otherwise", owner.Kind, owner.Name)
	case isOwnerEnding(ctx, e, pod.Namespace, owner):
		return fmt.Sprintf("%s %s, which owns the pod, is deleted and creates no pod again: the pod goes next, or delete it",
			owner.Kind, owner.Name)
	}
	return fmt.Sprintf("stop the workload that owns the pod first, %s %s, or it creates the pod again", owner.Kind,
		owner.Name)
}

// podCreators are the kinds of Kubernetes that create a pod again. A node does for static pods.
var podCreators = map[string][]string{
	"": {"ReplicationController", "Node"}, "apps": {"ReplicaSet", "StatefulSet", "DaemonSet", "Deployment"}, "batch": {"Job", "CronJob"},
}

// createsPods reports whether the owner may create pods: a custom resource may.
func createsPods(owner *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	kinds, known := podCreators[gv.Group]
	return err != nil || !known || slices.Contains(kinds, owner.Kind)
}

// isOwnerEnding reports whether the owner is gone, or is being deleted: such an owner creates no pod.
func isOwnerEnding(ctx context.Context, e chain.Explorer, namespace string, owner *metav1.OwnerReference) bool {
	ref, found := e.Reader().Find(owner.APIVersion, owner.Kind, namespace, owner.Name)
	if !found {
		return false
	}
	object, presence, _ := e.Reader().Live(ctx, ref)
	switch presence {
	case cluster.Absent:
		return true
	case cluster.Present:
		return object.GetUID() != owner.UID || object.GetDeletionTimestamp() != nil
	case cluster.Unseen:
	}
	return false
}

// podBlockers returns a blocker for each of the first pods that use a claim, and of the first that are being deleted, one
// for the others, and one for all that have finished: each explanation takes requests, and jobs share claims.
func podBlockers(ctx context.Context, e chain.Explorer, pods []*corev1.Pod, name string) []blocker.Blocker {
	var all []blocker.Blocker
	var finished, others []*corev1.Pod
	explained := map[bool]int{} // by whether the pod is being deleted
	for _, pod := range pods {
		deleted := isDeleted(pod)
		switch {
		case hasFinished(pod) && !deleted:
			finished = append(finished, pod)
		case explained[deleted] == maxUsers:
			others = append(others, pod)
		default:
			explained[deleted]++
			all = append(all, podBlocker(ctx, e, pod, name))
		}
	}
	if len(others) > 0 {
		all = append(all, furtherPods(e, others, name))
	}
	if len(finished) > 0 {
		all = append(all, finishedPods(ctx, e, finished, name))
	}
	return all
}

// furtherPods returns the blocker of pods that use a claim and are not explained.
func furtherPods(e chain.Explorer, pods []*corev1.Pod, name string) blocker.Blocker {
	first, deleted := pods[0], 0
	for _, pod := range pods {
		if isDeleted(pod) {
			deleted++
		}
	}
	b := blocker.Blocker{
		Object:    blocker.Object{Kind: "Pod", Namespace: first.Namespace, Name: first.Name, UID: string(first.UID)},
		Finalizer: name, Reason: blocker.PodUsesClaim, Verdict: blocker.Waiting,
		Holder: fmt.Sprintf("%d further pods of namespace %s", len(pods), first.Namespace),
		Evidence: []blocker.Evidence{evidence(blocker.FromField,
			"spec.volumes of %d further pods names the claim, such as pod %s; %d of these are being deleted", len(pods), first.Name,
			deleted)},
		Next: cluster.Steps("the claim goes once no pod uses it", e.Commands().Kubectl(first.Namespace, "get", "pods")),
	}
	if deleted > 0 { // what they wait for was not read
		b.Verdict = blocker.Unknown
	}
	return b
}

// finishedPods returns the blocker of pods that have finished.
func finishedPods(ctx context.Context, e chain.Explorer, finished []*corev1.Pod, name string) blocker.Blocker {
	b := podBlocker(ctx, e, finished[0], name)
	if len(finished) == 1 {
		return b
	}
	names := make([]string, len(finished))
	for i, pod := range finished {
		names[i] = pod.Name
	}
	commands, namespace := e.Commands(), finished[0].Namespace
	b.Holder = fmt.Sprintf("%d pods of namespace %s", len(finished), namespace)
	b.Evidence = []blocker.Evidence{evidence(blocker.FromField,
		"spec.volumes of %d pods that have finished names the claim: %s", len(finished), strings.Join(names, ", "))}
	b.Next = cluster.Steps("these pods have finished, and count until they are deleted",
		commands.Kubectl(namespace, append([]string{"get", "pods"}, names...)...)) + "\n" +
		cluster.LastResort("the claim goes with the last of the pods, and with policy Delete its data",
			commands.Kubectl(namespace, append([]string{"delete", "pods"}, names...)...))
	return b
}

// hasFinished reports whether the pod has ended by itself.
func hasFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
