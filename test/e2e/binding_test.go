package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func withSize(size string) func(*v1.PersistentVolume) {
	return func(volume *v1.PersistentVolume) {
		volume.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
	}
}

func TestAClaimGetsTheSmallestVolumeThatFits(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	for _, size := range []string{"8Mi", "2Mi", "4Mi"} {
		volume := s.createVolume("h-"+size, v1.PersistentVolumeReclaimRetain, withSize(size))
		s.awaitVolume(volume.Name, "is available", isAvailable)
	}
	s.createClaim("claim", s.namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("3Mi")
	})
	volume := s.awaitBound("claim")
	if handle(volume) != "h-4Mi" {
		t.Errorf("bound to %s, want h-4Mi", handle(volume))
	}
	claim := s.awaitClaim("claim", "shows its capacity", func(c *v1.PersistentVolumeClaim) bool { return c.Status.Capacity != nil })
	if got := claim.Status.Capacity.Storage().String(); got != "4Mi" || len(claim.Status.AccessModes) != 1 {
		t.Errorf("status: capacity %s, access modes %v", got, claim.Status.AccessModes)
	}
	for object, annotations := range map[string]map[string]string{"claim": claim.Annotations, "volume": volume.Annotations} {
		if annotations[storage.AnnBoundByController] != "yes" {
			t.Errorf("the %s does not say that a controller bound it: %v", object, annotations)
		}
	}
}

func TestAVolumeThatComesLaterServesTheClaimThatWaits(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	block := v1.PersistentVolumeBlock
	s.createClaim("selective", s.namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	})
	s.createClaim("block", s.namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block })
	s.awaitEvent(s.newClaim("selective", s.namespace), "ProvisioningFailed") // there is no such class
	s.createVolume("plain", v1.PersistentVolumeReclaimRetain)
	s.createVolume("gold", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Labels = map[string]string{"tier": "gold"} })
	s.createVolume("device", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Spec.VolumeMode = &block })
	for claim, want := range map[string]string{"selective": "gold", "block": "device"} {
		if got := handle(s.awaitBound(claim)); got != want {
			t.Errorf("claim %s is bound to %s, want %s", claim, got, want)
		}
	}
}

func TestAPairThatAUserPrebindsIsBoundInBothDirections(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s.createVolume("for-claim", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.namespace, Name: "chosen"}
	})
	named := s.createVolume("named", v1.PersistentVolumeReclaimRetain)
	s.createClaim("chosen", s.namespace)
	s.createClaim("chooser", s.namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = named.Name })
	for claim, want := range map[string]string{"chosen": "for-claim", "chooser": "named"} {
		if got := handle(s.awaitBound(claim)); got != want {
			t.Errorf("claim %s is bound to %s, want %s", claim, got, want)
		}
	}
}

func TestAClaimThatNamesAVolumeTooSmallIsToldSo(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	volume := s.createVolume("small", v1.PersistentVolumeReclaimRetain, withSize("1Ki"))
	claim := s.createClaim("claim", s.namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = volume.Name })
	if message := s.awaitEvent(claim, "VolumeMismatch"); !strings.Contains(message, volume.Name) {
		t.Errorf("the event does not name the volume: %s", message)
	}
}

func TestAClaimThatWaitsForItsConsumerIsServedOnceANodeIsSelected(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	node, err := s.client.CoreV1().Nodes().Create(s.ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	s.must(err, "create node")
	claim := s.createClaim("claim", waitClass)
	s.awaitEvent(claim, "WaitForFirstConsumer")
	s.annotate(claim, storage.AnnSelectedNode, node.Name)
	if volume := s.awaitBound("claim"); volume.Annotations[storage.AnnDynamicallyProvisioned] != s.driver.DriverName {
		t.Errorf("the volume was not provisioned: %v", volume.Annotations)
	}
}

func TestAClaimWithoutClassGetsTheDefaultClassWhenItComes(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true, driver: "--with=publish"})) // a cluster of its own: the default is everybody's
	claim := s.newClaim("claim", "")
	claim.Spec.StorageClassName = nil
	_, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Create(s.ctx, claim, metav1.CreateOptions{})
	s.must(err, "create claim")
	s.awaitEvent(claim, "FailedBinding")
	class := newClass("the-default", s.driver.DriverName, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	_, err = s.client.StorageV1().StorageClasses().Create(s.ctx, &class, metav1.CreateOptions{})
	s.must(err, "create class")
	if volume := s.awaitBound("claim"); volume.Spec.StorageClassName != class.Name {
		t.Errorf("the volume has class %q, want %q", volume.Spec.StorageClassName, class.Name)
	}
}

func TestAClaimThatAPodUsesIsKeptUntilThePodIsGone(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s.createClaim("claim", deleteClass)
	volume := s.awaitBound("claim")
	pod := s.createPod("claim")
	s.deleteClaim("claim")
	s.passQueues()
	s.awaitClaim("claim", "is kept", func(c *v1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil })
	zero := int64(0)
	s.must(s.client.CoreV1().Pods(s.namespace).Delete(s.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}), "delete pod")
	s.awaitClaimGone("claim")
	s.awaitVolumeGone(volume.Name)
	s.expectReclaimed(volume)
}

// createPod makes a pod that was scheduled and uses the claim.
func (s *scene) createPod(claim string) *v1.Pod {
	s.t.Helper()
	pod, err := s.client.CoreV1().Pods(s.namespace).Create(s.ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: v1.PodSpec{
			NodeName:   "node",
			Containers: []v1.Container{{Name: "main", Image: "image"}},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}, metav1.CreateOptions{})
	s.must(err, "create pod")
	return pod
}

func (s *scene) annotate(claim *v1.PersistentVolumeClaim, key, value string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	s.must(err, "encode annotation")
	_, err = s.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(s.ctx, claim.Name, types.MergePatchType, body, metav1.PatchOptions{})
	s.must(err, "annotate claim")
}

func isAvailable(volume *v1.PersistentVolume) bool { return volume.Status.Phase == v1.VolumeAvailable }
