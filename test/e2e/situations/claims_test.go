package situations

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// usedClaims are the situations of claims that something uses.
var usedClaims = []situation{
	{
		number: "19", name: "a running pod uses the claim",
		programs: loops,
		build: func(r *place) []string {
			r.CreateClaim("claim", r.Namespace)
			r.setPodPhase(r.CreatePod("claim").Name, v1.PodRunning)
			r.DeleteClaim("claim")
			return []string{"pvc/claim"}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.PodUsesClaim}, next: "delete pod pod",
		step: func(r *place) { r.endPod("pod") },
	},
	{
		number: "20", name: "a finished pod of a Job uses the claim",
		programs: loops,
		build: func(r *place) []string {
			r.CreateClaim("claim", r.Namespace)
			r.setPodPhase(r.CreatePod("claim").Name, v1.PodSucceeded)
			r.DeleteClaim("claim")
			return []string{"pvc/claim"}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.PodUsesClaim}, next: "delete pod pod",
		step: func(r *place) { r.endPod("pod") },
	},
	{
		number: "20o", name: "the claim owns the pod that uses it",
		programs: loops,
		build: func(r *place) []string {
			claim := r.CreateClaim("claim", r.Namespace)
			r.ownPod(r.CreatePod("claim"), metav1.OwnerReference{APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Name: claim.Name, UID: claim.UID, Controller: ptr.To(true)})
			r.DeleteClaim("claim")
			return []string{"pvc/claim"}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.PodUsesClaim}, next: "creates no pods: delete the pod",
		absent: "stop the workload",
		step:   func(r *place) { r.endPod("pod") },
	},
	{
		number: "20d", name: "the Job of the pod that uses the claim is being deleted",
		programs: loops,
		build: func(r *place) []string {
			r.CreateClaim("claim", r.Namespace)
			r.ownPod(r.CreatePod("claim"), r.createDeletedJob("job"))
			r.DeleteClaim("claim")
			return []string{"pvc/claim"}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.PodUsesClaim}, next: "creates no pod again",
		absent: "stop the workload",
		step:   func(r *place) { r.endPod("pod") },
	},
	{
		number: "21", name: "only a pod that was never scheduled uses the claim",
		alone: true,
		build: func(r *place) []string {
			r.createClaimOnly(string(finalizer.ClaimProtection))
			r.createPendingPod("claim")
			r.createLease(metav1.NamespaceSystem, "kube-controller-manager", "master-0", 0, day)
			return r.deleteClaim()
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs}, step: (*place).stripClaim,
	},
	{
		number: "22", name: "a pod on a dead node uses the claim",
		programs: loops,
		build: func(r *place) []string {
			r.createNode(r.Namespace, v1.ConditionUnknown, time.Hour)
			r.CreateClaim("claim", r.Namespace)
			args := r.deletePodWithClaim(r.Namespace, "claim")
			r.DeleteClaim("claim")
			return args
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.NodeUnreachable}, next: "out-of-service",
		step: func(r *place) { r.forcePod("pod") },
	},
	{
		number: "23", name: "the protection loop is switched off everywhere",
		alone: true,
		build: func(r *place) []string {
			r.createClaimOnly(string(finalizer.ClaimProtection))
			r.createLease(metav1.NamespaceSystem, "pv-controller", "pv-controller-0", time.Hour, 15*time.Second)
			r.createLease(metav1.NamespaceSystem, "kube-controller-manager", "master-0", time.Hour, 15*time.Second)
			r.scaleToZero(deploy.Namespace, "pv-controller")
			return r.deleteClaim()
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, step: (*place).stripClaim,
	},
	{
		number: "24", name: "a clone of the claim is being made",
		programs: loops,
		build: func(r *place) []string {
			r.serve()
			r.CreateClaim("claim", r.Namespace)
			r.AwaitBound("claim")
			clone := r.NewClaim("clone", r.Namespace, harness.CloneOf("claim"))
			r.createPaused(clone)
			return r.deleteClaim()
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.CloneRunning}, next: "wait until the clone",
		step: func(r *place) { r.driver.Resume() },
	},
}

// createPaused creates the claim and waits until the driver creates its volume, which takes
// until Resume.
func (r *place) createPaused(claim *v1.PersistentVolumeClaim) {
	r.T.Helper()
	r.driver.Pause()
	claim, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Create(r.Ctx, claim, metav1.CreateOptions{})
	r.Must(err, "create claim")
	name := "pvc-" + string(claim.UID)
	r.Must(r.driver.Inject([]csimock.Fault{{Method: "CreateVolume", Volume: name, Latency: time.Millisecond, Times: 1}}),
		"inject fault")
	<-r.driver.Seen("faulted", harness.Call{Method: "CreateVolume", Volume: name})
}

// createClaimOnly creates the claim "claim" of the situation's driver with these finalizers and
// pvc-protection off, unless it is among them.
func (r *place) createClaimOnly(finalizers ...string) {
	r.T.Helper()
	claim := r.CreateClaim("claim", r.Namespace, func(claim *v1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": r.driverName()}
	})
	claim.Finalizers = finalizers
	_, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Update(r.Ctx, claim, metav1.UpdateOptions{})
	r.Must(err, "set finalizers of claim")
}

// deleteClaim deletes the claim and returns the arguments of why.
func (r *place) deleteClaim() []string {
	r.T.Helper()
	r.DeleteClaim("claim")
	return []string{"pvc/claim"}
}

// setPodPhase writes the phase of the pod.
func (r *place) setPodPhase(name string, phase v1.PodPhase) {
	r.T.Helper()
	pod, err := r.Client.CoreV1().Pods(r.Namespace).Get(r.Ctx, name, metav1.GetOptions{})
	r.Must(err, "get pod")
	pod.Status.Phase = phase
	_, err = r.Client.CoreV1().Pods(r.Namespace).UpdateStatus(r.Ctx, pod, metav1.UpdateOptions{})
	r.Must(err, "set phase of pod")
}

// stripClaim removes the finalizers of the claim, as its programs do.
func (r *place) stripClaim() { r.strip(claims, r.Namespace, "claim") }

// scaleToZero makes the Deployment want no replica.
func (r *place) scaleToZero(namespace, name string) {
	r.T.Helper()
	scale, err := r.Client.AppsV1().Deployments(namespace).GetScale(r.Ctx, name, metav1.GetOptions{})
	r.Must(err, "get scale of Deployment")
	scale.Spec.Replicas = 0
	_, err = r.Client.AppsV1().Deployments(namespace).UpdateScale(r.Ctx, name, scale, metav1.UpdateOptions{})
	r.Must(err, "scale Deployment")
}

// endPod deletes the pod, as kubectl and the kubelet do.
func (r *place) endPod(name string) {
	r.T.Helper()
	zero := int64(0)
	r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &zero}),
		"delete pod")
}

// podWith returns a pod that uses the claim.
func (r *place) podWith(node, claim string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: r.Namespace},
		Spec: v1.PodSpec{
			NodeName: node, Containers: []v1.Container{{Name: "main", Image: "image"}},
			Volumes: []v1.Volume{{Name: "data",
				VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}},
		},
	}
}

// createPendingPod creates a pod that uses the claim and was never scheduled.
func (r *place) createPendingPod(claim string) {
	r.T.Helper()
	_, err := r.Client.CoreV1().Pods(r.Namespace).Create(r.Ctx, r.podWith("", claim), metav1.CreateOptions{})
	r.Must(err, "create pod")
}

// deletePodWithClaim creates a pod on the node that uses the claim, and deletes it. Its
// grace period is over.
func (r *place) deletePodWithClaim(node, claim string) []string {
	r.T.Helper()
	r.createPodWithStatus(r.podWith(node, claim), isReady)
	second := int64(1)
	r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, "pod", metav1.DeleteOptions{GracePeriodSeconds: &second}),
		"delete pod")
	r.Until("the grace period is over", func() bool {
		pod, err := r.Client.CoreV1().Pods(r.Namespace).Get(r.Ctx, "pod", metav1.GetOptions{})
		return err == nil && time.Now().After(pod.DeletionTimestamp.Add(time.Second))
	})
	return []string{"pvc/" + claim}
}

// ownPod makes the owner the controller of the pod.
func (r *place) ownPod(pod *v1.Pod, owner metav1.OwnerReference) {
	r.T.Helper()
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	_, err := r.Client.CoreV1().Pods(r.Namespace).Update(r.Ctx, pod, metav1.UpdateOptions{})
	r.Must(err, "set owner of pod")
}

// createDeletedJob creates a Job that is being deleted in the foreground, and returns it as an owner.
func (r *place) createDeletedJob(name string) metav1.OwnerReference {
	r.T.Helper()
	job, err := r.Client.BatchV1().Jobs(r.Namespace).Create(r.Ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Template: v1.PodTemplateSpec{Spec: v1.PodSpec{RestartPolicy: v1.RestartPolicyNever,
			Containers: []v1.Container{{Name: "c", Image: "i"}}}}},
	}, metav1.CreateOptions{})
	r.Must(err, "create Job")
	r.Must(r.Client.BatchV1().Jobs(r.Namespace).Delete(r.Ctx, name,
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}), "delete Job")
	return metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: job.UID, Controller: ptr.To(true)}
}
