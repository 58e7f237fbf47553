package storage

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func withSize(size string) func(*v1.PersistentVolume) {
	return func(volume *v1.PersistentVolume) {
		volume.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
	}
}

func TestClaimBindsToSmallestMatchingVolume(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	for _, size := range []string{"8Mi", "2Mi", "4Mi"} {
		volume := s.CreateVolume("h-"+size, v1.PersistentVolumeReclaimRetain, withSize(size))
		s.AwaitVolume(volume.Name, "is available", harness.IsAvailable)
	}
	s.CreateClaim("claim", s.Namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("3Mi")
	})
	volume := s.AwaitBound("claim")
	if harness.Handle(volume) != "h-4Mi" {
		t.Errorf("bound to %s, want h-4Mi", harness.Handle(volume))
	}
	claim := s.AwaitClaim("claim", "has a capacity",
		func(c *v1.PersistentVolumeClaim) bool { return c.Status.Capacity != nil })
	if got := claim.Status.Capacity.Storage().String(); got != "4Mi" || len(claim.Status.AccessModes) != 1 {
		t.Errorf("status: capacity %s, access modes %v", got, claim.Status.AccessModes)
	}
	for object, annotations := range map[string]map[string]string{"claim": claim.Annotations,
		"volume": volume.Annotations} {
		if annotations[storage.AnnBoundByController] != "yes" {
			t.Errorf("the %s is not annotated as bound by a controller: %v", object, annotations)
		}
	}
}

func TestPendingClaimBindsToLaterVolume(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	block := v1.PersistentVolumeBlock
	s.CreateClaim("selective", s.Namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	})
	s.CreateClaim("block", s.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block })
	s.AwaitEvent(s.NewClaim("selective", s.Namespace), "ProvisioningFailed") // there is no such class
	s.CreateVolume("plain", v1.PersistentVolumeReclaimRetain)
	s.CreateVolume("gold", v1.PersistentVolumeReclaimRetain,
		func(v *v1.PersistentVolume) { v.Labels = map[string]string{"tier": "gold"} })
	s.CreateVolume("device", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Spec.VolumeMode = &block })
	for claim, want := range map[string]string{"selective": "gold", "block": "device"} {
		if got := harness.Handle(s.AwaitBound(claim)); got != want {
			t.Errorf("claim %s is bound to %s, want %s", claim, got, want)
		}
	}
}

func TestPrebindingWorksFromVolumeAndFromClaim(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	s.CreateVolume("for-claim", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: s.Namespace, Name: "chosen"}
	})
	named := s.CreateVolume("named", v1.PersistentVolumeReclaimRetain)
	s.CreateClaim("chosen", s.Namespace)
	s.CreateClaim("chooser", s.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = named.Name })
	for claim, want := range map[string]string{"chosen": "for-claim", "chooser": "named"} {
		if got := harness.Handle(s.AwaitBound(claim)); got != want {
			t.Errorf("claim %s is bound to %s, want %s", claim, got, want)
		}
	}
}

func TestClaimNamingTooSmallVolumeGetsEvent(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	volume := s.CreateVolume("small", v1.PersistentVolumeReclaimRetain, withSize("1Ki"))
	claim := s.CreateClaim("claim", s.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = volume.Name })
	if message := s.AwaitEvent(claim, "VolumeMismatch"); !strings.Contains(message, volume.Name) {
		t.Errorf("the event does not name the volume: %s", message)
	}
}

func TestDelayedBindingClaimBindsAfterNodeSelection(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	node, err := s.Client.CoreV1().Nodes().Create(s.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}},
		metav1.CreateOptions{})
	s.Must(err, "create node")
	claim := s.CreateClaim("claim", harness.WaitClass)
	s.AwaitEvent(claim, "WaitForFirstConsumer")
	s.Annotate(claim, storage.AnnSelectedNode, node.Name)
	if volume := s.AwaitBound("claim"); volume.Annotations[storage.AnnDynamicallyProvisioned] != s.Driver.DriverName {
		t.Errorf("the volume was not provisioned: %v", volume.Annotations)
	}
}

func TestClaimWithoutClassGetsLaterDefaultClass(t *testing.T) {
	s := harness.Join(t, harness.Setup{DriverFlags: "--with=publish"}) // another setup, because a default class affects all claims of a cluster
	claim := s.NewClaim("claim", "")
	claim.Spec.StorageClassName = nil
	_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Create(s.Ctx, claim, metav1.CreateOptions{})
	s.Must(err, "create claim")
	s.AwaitEvent(claim, "FailedBinding")
	class := harness.NewClass("the-default", s.Driver.DriverName, v1.PersistentVolumeReclaimDelete,
		storagev1.VolumeBindingImmediate)
	class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	s.CreateStorageClass(class)
	if volume := s.AwaitBound("claim"); volume.Spec.StorageClassName != class.Name {
		t.Errorf("the volume has class %q, want %q", volume.Spec.StorageClassName, class.Name)
	}
}

func TestClaimInUseStaysUntilPodIsDeleted(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	s.CreateClaim("claim", harness.DeleteClass)
	volume := s.AwaitBound("claim")
	pod := s.CreatePod("claim")
	s.DeleteClaim("claim")
	s.PassQueues()
	s.AwaitClaim("claim", "is kept", func(c *v1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil })
	zero := int64(0)
	s.Must(s.Client.CoreV1().Pods(s.Namespace).Delete(s.Ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}),
		"delete pod")
	s.AwaitClaimGone("claim")
	s.AwaitVolumeGone(volume.Name)
	s.ExpectReclaimed(volume)
}
