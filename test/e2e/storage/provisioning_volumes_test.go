package storage

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// events returns the messages of all events about the object with the reason.
func events(s *harness.Session, object metav1.Object, reason string) []string {
	s.T.Helper()
	list, err := s.Client.CoreV1().Events(s.Namespace).List(s.Ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.name=" + object.GetName() + ",reason=" + reason})
	s.Must(err, "list events")
	var messages []string
	for _, event := range list.Items {
		messages = append(messages, event.Message)
	}
	return messages
}

func TestFilesystemAndBlockVolumesFollowTheClass(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	s.CreateClass(func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/fstype": "xfs", "tier": "gold"}
		c.MountOptions = []string{"noatime"}
	})
	s.CreateClaim("files", s.Namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	})
	block := v1.PersistentVolumeBlock
	s.CreateClaim("block", s.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block })
	files, raw := s.AwaitBound("files"), s.AwaitBound("block")
	if files.Spec.CSI.FSType != "xfs" || files.Spec.MountOptions[0] != "noatime" ||
		files.Spec.AccessModes[0] != v1.ReadWriteOncePod {
		t.Errorf("the filesystem volume is %+v", files.Spec)
	}
	if raw.Spec.CSI.FSType != "" || *raw.Spec.VolumeMode != block {
		t.Errorf("the block volume is %+v", raw.Spec)
	}
	if got := s.StoredVolume(files).Parameters; len(got) != 1 || got["tier"] != "gold" {
		t.Errorf("the driver got the parameters %v", got)
	}
}

func TestCloneSourceIsProtectedDuringCloning(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	clone := func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "origin"}
	}
	waiting := s.CreateClaim("clone", harness.DeleteClass, clone)
	if message := s.AwaitEvent(waiting, "ProvisioningFailed"); !strings.Contains(message, "does not exist") {
		t.Errorf("the event does not say that the source is missing: %s", message)
	}
	s.CreateClaim("origin", harness.DeleteClass)
	origin, cloned := s.AwaitBound("origin"), s.AwaitBound("clone")
	if got := s.StoredVolume(cloned).Source.Volume; got != harness.Handle(origin) {
		t.Errorf("the clone was created from %q, want %s", got, harness.Handle(origin))
	}
	s.DeleteClaim("origin")
	s.AwaitClaimGone("origin") // so the source finalizer was removed
}

func TestAttributesClassParametersReachDriver(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	claim := s.CreateClaim("claim", harness.DeleteClass,
		func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = &s.Namespace })
	if message := s.AwaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, s.Namespace) {
		t.Errorf("the event does not name the class: %s", message)
	}
	_, err := s.Client.StorageV1().VolumeAttributesClasses().Create(s.Ctx, &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}, DriverName: s.Driver.DriverName,
		Parameters: map[string]string{"iops": "9"},
	}, metav1.CreateOptions{})
	s.Must(err, "create attributes class")
	volume := s.AwaitBound("claim")
	if got := s.StoredVolume(volume).Mutable["iops"]; got != "9" || *volume.Spec.VolumeAttributesClassName != s.Namespace {
		t.Errorf("iops are %q, the volume's class is %v", got, volume.Spec.VolumeAttributesClassName)
	}
}

func TestForeignDataSourceIsLeftToItsPopulator(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	group := "hello.example.com"
	claim := s.CreateClaim("claim", harness.DeleteClass, func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &v1.TypedObjectReference{APIGroup: &group, Kind: "Hello", Name: "hello"}
	})
	if message := s.AwaitEvent(claim, "Provisioning"); !strings.Contains(message, group) {
		t.Errorf("the event does not name the source: %s", message)
	}
	s.PassQueues()
	if failures := events(s, claim, "ProvisioningFailed"); len(failures) > 0 {
		t.Errorf("the claim was not ignored: %v", failures)
	}
	s.AwaitClaim("claim", "waits", func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimPending })
}

func TestClaimBindsDespiteInvalidDriverAnswers(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	s = s.WithOwnDriver(s.Namespace+".invalid", "--with=topology --faults=../testdata/wrong-responses.yaml",
		"--retry-interval-start=50ms")
	s.CreateClass()
	ownNode(s, "node", "csimock/zone=local")
	// The provisioner sees the creation of later claims, and deletes unusable volumes of theirs.
	s.AwaitEvent(s.CreateClaim("other", s.Namespace, func(c *v1.PersistentVolumeClaim) {
		c.Spec.DataSourceRef = &v1.TypedObjectReference{APIGroup: ptr.To("hello.example.com"), Kind: "Hello", Name: "hello"}
	}), "Provisioning")
	seen := s.WatchEvents("ProvisioningFailed")
	claim := s.CreateClaim("claim", s.Namespace)
	for _, flaw := range []string{"no volume handle", "1000 bytes", "capacity 1 less", "not reachable"} {
		seen.Await(s, claim.Name, flaw)
	}
	volume := s.AwaitBound("claim")
	list, err := s.StorageClient().ListVolumes(s.Ctx, nil)
	s.Must(err, "list volumes of the storage system")
	if len(list.GetEntries()) != 1 || !s.IsStored(harness.Handle(volume)) {
		t.Errorf("the storage system has %v, want only %s", list.GetEntries(), harness.Handle(volume))
	}
}

func TestMigratedVolumeIsCreatedAndDeletedByDriver(t *testing.T) {
	s := harness.Join(t, harness.Setup{}).WithOwnDriver("ebs.csi.aws.com", "", "")
	s.CreateClass(func(c *storagev1.StorageClass) {
		c.Provisioner, c.Parameters = "kubernetes.io/aws-ebs", map[string]string{"type": "gp3", "fsType": "xfs"}
	})
	s.CreateClaim("claim", s.Namespace)
	volume := s.AwaitBound("claim")
	if volume.Spec.AWSElasticBlockStore == nil || volume.Spec.AWSElasticBlockStore.FSType != "xfs" ||
		volume.Annotations[storage.AnnDynamicallyProvisioned] != "kubernetes.io/aws-ebs" {
		t.Fatalf("the volume is %+v, annotated %v", volume.Spec.PersistentVolumeSource, volume.Annotations)
	}
	id := volume.Spec.AWSElasticBlockStore.VolumeID
	if !s.IsStored(id) {
		t.Errorf("the storage system does not have %s", id)
	}
	s.AwaitVolume(volume.Name, "is protected", func(v *v1.PersistentVolume) bool {
		return finalizer.Has(v.Finalizers, finalizer.External) && v.Annotations[storage.AnnMigratedTo] == s.Driver.DriverName
	})
	s.DeleteVolume(volume.Name)
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	if s.IsStored(id) {
		t.Errorf("volume %s leaked", id)
	}
	if calls := s.CountCalls("DeleteVolume", id); calls != 1 {
		t.Errorf("DeleteVolume was called %d times, want once", calls)
	}
}

// An administrator who migrates by hand creates a CSI volume for a disk of an existing
// in-tree volume.
func TestDiskSharedWithPluginVolumeIsNotDeleted(t *testing.T) {
	s := harness.Join(t, harness.Setup{}).WithOwnDriver("cinder.csi.openstack.org", "", "")
	s.CreateClass(func(c *storagev1.StorageClass) { c.Provisioner = "kubernetes.io/cinder" })
	s.CreateClaim("in-tree", s.Namespace)
	inTree := s.AwaitBound("in-tree")
	id := inTree.Spec.Cinder.VolumeID
	s.CreateVolume(id, v1.PersistentVolumeReclaimDelete,
		func(v *v1.PersistentVolume) { v.Spec.StorageClassName = "by-hand" })
	s.CreateClaim("by-hand", "by-hand")
	byHand := s.AwaitBound("by-hand")
	for _, name := range []string{"by-hand", "in-tree"} {
		s.DeleteClaim(name)
	}
	for volume, other := range map[*v1.PersistentVolume]string{byHand: inTree.Name, inTree: byHand.Name} {
		if message := s.AwaitEvent(volume, "VolumeHandleShared"); !strings.Contains(message, other) {
			t.Errorf("the event does not name %s: %s", other, message)
		}
	}
	if !s.IsStored(id) || s.CountCalls("DeleteVolume", id) != 0 {
		t.Errorf("the data of %s is gone: DeleteVolume was called %d times", id, s.CountCalls("DeleteVolume", id))
	}
}
