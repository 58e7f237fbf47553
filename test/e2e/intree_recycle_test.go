package e2e

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// awaitRecycler waits for a recycler pod of the volume other than the one with the UID.
func (s *scene) awaitRecycler(volume *v1.PersistentVolume, other types.UID) *v1.Pod {
	s.t.Helper()
	which := named{"pods", metav1.NamespaceDefault, reclaim.RecyclerName(volume)}
	return await(s, &v1.Pod{}, which, "was made", func(p *v1.Pod, exists bool) bool {
		return exists && p.UID != other && p.DeletionTimestamp == nil
	})
}

// endPod writes how a pod ended, as a kubelet does.
func (s *scene) endPod(pod *v1.Pod, phase v1.PodPhase, message string) {
	s.t.Helper()
	pod.Status.Phase, pod.Status.Message = phase, message
	_, err := s.client.CoreV1().Pods(pod.Namespace).UpdateStatus(s.ctx, pod, metav1.UpdateOptions{})
	s.must(err, "write status of pod")
}

// sayOf makes an event about the pod, as a kubelet does.
func (s *scene) sayOf(pod *v1.Pod, message string) {
	s.t.Helper()
	_, err := s.client.CoreV1().Events(pod.Namespace).Create(s.ctx, &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: pod.Name + "."},
		InvolvedObject: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:           v1.EventTypeNormal, Reason: "Pulling", Message: message,
	}, metav1.CreateOptions{})
	s.must(err, "create event")
}

func (s *scene) awaitNoPod(pod *v1.Pod) {
	s.t.Helper()
	await(s, &v1.Pod{}, named{"pods", pod.Namespace, pod.Name}, "is gone", func(p *v1.Pod, exists bool) bool { return !exists || p.UID != pod.UID })
}

// releaseForRecycling returns a volume that is to be recycled, which the
// pv-controller has the rights for.
func (s *scene) releaseForRecycling(source v1.PersistentVolumeSource) *v1.PersistentVolume {
	s.t.Helper()
	s.must(sandbox.Apply(s.ctx, s.plane.RESTConfig(), deploy.Recycler), "apply the rights to recycle")
	volume := s.createVolume("scrubbed", v1.PersistentVolumeReclaimRecycle, func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeSource = source })
	s.createClaim("claim", s.namespace)
	s.awaitBound("claim")
	s.deleteClaim("claim")
	return s.awaitVolume(volume.Name, "is released", isReleased)
}

func isFree(v *v1.PersistentVolume) bool {
	return v.Status.Phase == v1.VolumeAvailable && v.Spec.ClaimRef == nil && v.Status.Message == ""
}

func pathSource(s *scene) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/data/" + s.namespace}}
}

func exportSource(s *scene) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "nfs.example.com", Path: "/" + s.namespace}}
}

func TestARecycledVolumeCanBeClaimedAgain(t *testing.T) {
	for name, source := range map[string]func(*scene) v1.PersistentVolumeSource{"host path": pathSource, "nfs": exportSource} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := enter(t, shared(t, setup{honor: true}))
			volume := s.releaseForRecycling(source(s))
			first := s.awaitRecycler(volume, "")
			if scrubbed := first.Spec.Volumes[0].VolumeSource; (scrubbed.HostPath == nil) != (volume.Spec.HostPath == nil) || (scrubbed.NFS == nil) != (volume.Spec.NFS == nil) {
				t.Errorf("the pod scrubs %+v", scrubbed)
			}
			s.sayOf(first, "the image is being pulled")
			s.endPod(first, v1.PodSucceeded, "")
			s.awaitVolume(volume.Name, "is free", isFree)
			s.awaitEvent(volume, "VolumeRecycled")
			if message := s.awaitEvent(volume, "RecyclerPod"); message != "Recycler pod: the image is being pulled" {
				t.Errorf("the volume's event says %q", message)
			}
			s.awaitNoPod(first)
			// The success counts once: the next claim's data is scrubbed again.
			s.createClaim("claim", s.namespace)
			s.awaitBound("claim")
			s.deleteClaim("claim")
			second := s.awaitRecycler(volume, first.UID)
			s.endPod(second, v1.PodSucceeded, "")
			s.awaitVolume(volume.Name, "is free again", isFree)
		})
	}
}

func TestARecyclerPodThatFailsIsToldAndTriedAgain(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.releaseForRecycling(pathSource(s))
	first := s.awaitRecycler(volume, "")
	s.endPod(first, v1.PodFailed, "the disk is read-only")
	s.awaitVolume(volume.Name, "has failed", func(v *v1.PersistentVolume) bool {
		return v.Status.Phase == v1.VolumeFailed && strings.Contains(v.Status.Message, "the disk is read-only")
	})
	if message := s.awaitEvent(volume, "VolumeFailedRecycle"); !strings.Contains(message, "the disk is read-only") {
		t.Errorf("the event says %q", message)
	}
	second := s.awaitRecycler(volume, first.UID)
	s.endPod(second, v1.PodSucceeded, "")
	s.awaitVolume(volume.Name, "is free", isFree)
}

func TestASucceededPodOfSomebodyElseIsNotBelieved(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	forged, err := s.client.CoreV1().Pods(metav1.NamespaceDefault).Create(s.ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: reclaim.RecyclerPrefix + s.namespace + "-scrubbed"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "none"}}},
	}, metav1.CreateOptions{})
	s.must(err, "create pod")
	s.endPod(forged, v1.PodSucceeded, "")
	volume := s.releaseForRecycling(exportSource(s))
	ours := s.awaitRecycler(volume, forged.UID)
	s.awaitVolume(volume.Name, "is still released", isReleased)
	s.endPod(ours, v1.PodSucceeded, "")
	s.awaitVolume(volume.Name, "is free", isFree)
}

func TestAPolicyTurnedToRetainStopsTheRecyclerPod(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.releaseForRecycling(exportSource(s))
	pod := s.awaitRecycler(volume, "")
	s.setPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
	s.awaitNoPod(pod)
	s.awaitVolume(volume.Name, "is still released", isReleased)
}

func TestARecyclerPodThatNobodyWaitsForIsRemoved(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.releaseForRecycling(exportSource(s))
	pod := s.awaitRecycler(volume, "")
	s.deleteVolume(volume.Name)
	s.awaitVolumeGone(volume.Name)
	s.endPod(pod, v1.PodSucceeded, "")
	s.awaitNoPod(pod)
}

func TestAVolumeThatNobodyCanRecycleHasFailed(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.createVolume("path", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = foreign })
	s.createClaim("claim", s.namespace)
	s.awaitBound("claim")
	s.setPolicy(volume.Name, v1.PersistentVolumeReclaimRecycle)
	s.deleteClaim("claim")
	s.awaitVolume(volume.Name, "has failed", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeFailed })
	s.awaitEvent(volume, "VolumeFailedRecycle")
}
