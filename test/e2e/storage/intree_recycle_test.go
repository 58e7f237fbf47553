package storage

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// awaitRecycler waits for a recycler pod of the volume whose UID is not the given one.
func awaitRecycler(s *harness.Session, volume *v1.PersistentVolume, other types.UID) *v1.Pod {
	s.T.Helper()
	which := harness.ObjectName{Resource: "pods", Namespace: metav1.NamespaceDefault, Name: plugin.RecyclerName(volume)}
	return harness.Await(s, &v1.Pod{}, which, "was created", func(p *v1.Pod, exists bool) bool {
		return exists && p.UID != other && p.DeletionTimestamp == nil
	})
}

// endPod sets the final phase of a pod, as the kubelet does.
func endPod(s *harness.Session, pod *v1.Pod, phase v1.PodPhase, message string) {
	s.T.Helper()
	pod.Status.Phase, pod.Status.Message = phase, message
	_, err := s.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(s.Ctx, pod, metav1.UpdateOptions{})
	s.Must(err, "write status of pod")
}

// createPodEvent creates an event about the pod, as the kubelet does.
func createPodEvent(s *harness.Session, pod *v1.Pod, message string) {
	s.T.Helper()
	_, err := s.Client.CoreV1().Events(pod.Namespace).Create(s.Ctx, &v1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + "."},
		InvolvedObject: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name,
			UID: pod.UID},
		Type: v1.EventTypeNormal, Reason: "Pulling", Message: message,
	}, metav1.CreateOptions{})
	s.Must(err, "create event")
}

func awaitNoPod(s *harness.Session, pod *v1.Pod) {
	s.T.Helper()
	harness.Await(s, &v1.Pod{}, harness.ObjectName{Resource: "pods", Namespace: pod.Namespace, Name: pod.Name}, "is gone",
		func(p *v1.Pod, exists bool) bool { return !exists || p.UID != pod.UID })
}

// releaseForRecycling returns a released volume with policy Recycle, and grants the
// pv-controller the rights to recycle.
func releaseForRecycling(s *harness.Session, source v1.PersistentVolumeSource) *v1.PersistentVolume {
	s.T.Helper()
	s.Must(sandbox.Apply(s.Ctx, s.Plane.RESTConfig(), deploy.Recycler), "apply the rights to recycle")
	volume := s.CreateVolume("recycled", v1.PersistentVolumeReclaimRecycle,
		func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeSource = source })
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	s.DeleteClaim("claim")
	return s.AwaitVolume(volume.Name, "is released", harness.IsReleased)
}

func isFree(v *v1.PersistentVolume) bool {
	return v.Status.Phase == v1.VolumeAvailable && v.Spec.ClaimRef == nil && v.Status.Message == ""
}

func pathSource(s *harness.Session) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/data/" + s.Namespace}}
}

func exportSource(s *harness.Session) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "nfs.example.com", Path: "/" + s.Namespace}}
}

func TestRecycledVolumeCanBeClaimedAgain(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for name, source := range map[string]func(*harness.Session) v1.PersistentVolumeSource{"host path": pathSource,
		"nfs": exportSource} {
		t.Run(name, func(t *testing.T) {
			s := harness.Join(t, harness.Setup{})
			volume := releaseForRecycling(s, source(s))
			first := awaitRecycler(s, volume, "")
			if recycled := first.Spec.Volumes[0].VolumeSource; (recycled.HostPath == nil) != (volume.Spec.HostPath == nil) ||
				(recycled.NFS == nil) != (volume.Spec.NFS == nil) {
				t.Errorf("the pod mounts %+v", recycled)
			}
			createPodEvent(s, first, "the image is being pulled")
			endPod(s, first, v1.PodSucceeded, "")
			s.AwaitVolume(volume.Name, "is available", isFree)
			s.AwaitEvent(volume, "VolumeRecycled")
			if message := s.AwaitEvent(volume, "RecyclerPod"); message != "Recycler pod: the image is being pulled" {
				t.Errorf("the volume's event says %q", message)
			}
			awaitNoPod(s, first)
			// A success counts once: the data of the next claim is recycled again.
			s.CreateClaim("claim", s.Namespace)
			s.AwaitBound("claim")
			s.DeleteClaim("claim")
			second := awaitRecycler(s, volume, first.UID)
			endPod(s, second, v1.PodSucceeded, "")
			s.AwaitVolume(volume.Name, "is available again", isFree)
		})
	}
}

func TestFailedRecyclerPodIsReportedAndRetried(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := releaseForRecycling(s, pathSource(s))
	first := awaitRecycler(s, volume, "")
	endPod(s, first, v1.PodFailed, "the disk is read-only")
	s.AwaitVolume(volume.Name, "has failed", func(v *v1.PersistentVolume) bool {
		return v.Status.Phase == v1.VolumeFailed && strings.Contains(v.Status.Message, "the disk is read-only")
	})
	if message := s.AwaitEvent(volume, "VolumeFailedRecycle"); !strings.Contains(message, "the disk is read-only") {
		t.Errorf("the event says %q", message)
	}
	second := awaitRecycler(s, volume, first.UID)
	endPod(s, second, v1.PodSucceeded, "")
	s.AwaitVolume(volume.Name, "is available", isFree)
}

func TestForeignSucceededPodIsNoRecyclerPod(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	forged, err := s.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(s.Ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: plugin.RecyclerPrefix + s.Namespace + "-recycled"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "none"}}},
	}, metav1.CreateOptions{})
	s.Must(err, "create pod")
	endPod(s, forged, v1.PodSucceeded, "")
	volume := releaseForRecycling(s, exportSource(s))
	ours := awaitRecycler(s, volume, forged.UID)
	s.AwaitVolume(volume.Name, "is still released", harness.IsReleased)
	endPod(s, ours, v1.PodSucceeded, "")
	s.AwaitVolume(volume.Name, "is available", isFree)
}

func TestPolicyRetainDeletesRecyclerPod(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := releaseForRecycling(s, exportSource(s))
	pod := awaitRecycler(s, volume, "")
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
	awaitNoPod(s, pod)
	s.AwaitVolume(volume.Name, "is still released", harness.IsReleased)
}

// A user gives the volume to the next claim while the pod of the last one still removes data.
func TestNextClaimAwaitsEndOfRecyclerPod(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := releaseForRecycling(s, pathSource(s))
	pod := awaitRecycler(s, volume, "")
	pods := s.Client.CoreV1().Pods(pod.Namespace)
	// A pod on a node is deleted in two steps, the second by the kubelet.
	s.Must(pods.Bind(s.Ctx, &v1.Binding{ObjectMeta: pod.ObjectMeta,
		Target: v1.ObjectReference{Kind: "Node", Name: s.Namespace}}, metav1.CreateOptions{}), "bind pod")
	_, err := s.Client.CoreV1().PersistentVolumes().Patch(s.Ctx, volume.Name, types.MergePatchType,
		[]byte(`{"spec":{"claimRef":null}}`), metav1.PatchOptions{})
	s.Must(err, "clear claimRef")
	which := harness.ObjectName{Resource: "pods", Namespace: pod.Namespace, Name: pod.Name}
	harness.Await(s, &v1.Pod{}, which, "is being deleted", func(p *v1.Pod,
		exists bool) bool {
		return exists && p.DeletionTimestamp != nil
	})
	claim := s.CreateClaim("next", s.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = volume.Name })
	if message := s.AwaitEvent(volume, "RecyclerPod"); !strings.Contains(message, pod.Name) {
		t.Errorf("the volume's event says %q", message)
	}
	if message := s.AwaitEvent(claim, "FailedBinding"); !strings.Contains(message, pod.Name) {
		t.Errorf("the claim's event says %q", message)
	}
	s.PassQueues()
	s.AwaitVolume(volume.Name, "is still released", harness.IsReleased)
	s.AwaitClaim("next", "is still pending",
		func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimPending })
	s.Must(pods.Delete(s.Ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}),
		"delete pod at once, as the kubelet does")
	if bound := s.AwaitBound("next"); bound.Name != volume.Name {
		t.Errorf("the claim is bound to %s", bound.Name)
	}
}

// The pod would remove the data of the new volume as well.
func TestVolumeCreatedInsideEndsRecyclerPod(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := releaseForRecycling(s, pathSource(s))
	pod := awaitRecycler(s, volume, "")
	inner := s.CreateVolume("inner", v1.PersistentVolumeReclaimRetain,
		harness.HostPath(volume.Spec.HostPath.Path+"/inner"))
	awaitNoPod(s, pod)
	if message := s.AwaitEvent(volume, "VolumeHandleShared"); !strings.Contains(message, inner.Name) {
		t.Errorf("the event says %q", message)
	}
}

func TestOrphanedRecyclerPodIsDeleted(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := releaseForRecycling(s, exportSource(s))
	pod := awaitRecycler(s, volume, "")
	s.DeleteVolume(volume.Name)
	s.AwaitVolumeGone(volume.Name)
	awaitNoPod(s, pod) // though it runs: the volume may be created again
}

func TestUnrecyclableVolumeFails(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := s.CreateVolume("path", v1.PersistentVolumeReclaimRetain,
		func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = harness.UnservedDriver })
	s.CreateClaim("claim", s.Namespace)
	s.AwaitBound("claim")
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimRecycle)
	s.DeleteClaim("claim")
	s.AwaitVolume(volume.Name, "has failed",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed })
	s.AwaitEvent(volume, "VolumeFailedRecycle")
}
