package storage

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func expectSecretReferences(s *harness.Session, volume *v1.PersistentVolume) {
	s.T.Helper()
	if volume.Annotations[provision.DeletionSecretName] != "claim-key" ||
		volume.Annotations[provision.DeletionSecretNamespace] != s.Namespace {
		s.T.Errorf("the annotations do not name the deletion secret: %v", volume.Annotations)
	}
	if staged := volume.Spec.CSI.NodeStageSecretRef; staged == nil || staged.Name != volume.Name+"-key" ||
		staged.Namespace != s.Namespace {
		s.T.Errorf("the node stage secret is %v", staged)
	}
}

func TestClassSecretIsRequiredAndNeverPrinted(t *testing.T) {
	const password = "correct-horse-battery-staple"
	s := harness.Join(t, harness.Setup{})
	s.GrantSecrets()
	s = s.WithOwnDriver(s.Namespace+".secret", "--secrets=password="+password,
		"-v=9 --extra-create-metadata --volume-name-prefix=vol --volume-name-uuid-length=16 --retry-interval-start=100ms")
	s.CreateClass(func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{
			"csi.storage.k8s.io/provisioner-secret-name":      "${pvc.name}-key",
			"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
			"csi.storage.k8s.io/node-stage-secret-name":       "${pv.name}-${pvc.annotations['example.com/key']}",
			"csi.storage.k8s.io/node-stage-secret-namespace":  s.Namespace,
		}
	})
	claim := s.CreateClaim("claim", s.Namespace,
		func(c *v1.PersistentVolumeClaim) { c.Annotations = map[string]string{"example.com/key": "key"} })
	if message := s.AwaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, s.Namespace+"/claim-key") {
		t.Errorf("the event does not name the secret: %s", message)
	}
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "claim-key"},
		StringData: map[string]string{"password": password}}
	_, err := s.Client.CoreV1().Secrets(s.Namespace).Create(s.Ctx, secret, metav1.CreateOptions{})
	s.Must(err, "create secret")

	volume := s.AwaitBound("claim")
	expectSecretReferences(s, volume)
	if len(volume.Name) != len("vol-")+16 || !strings.HasPrefix(volume.Name, "vol-") {
		t.Errorf("the volume has the name %s", volume.Name)
	}
	if got := s.StoredVolume(volume).Parameters; len(got) != 3 || got["csi.storage.k8s.io/pvc/name"] != "claim" ||
		got["csi.storage.k8s.io/pv/name"] != volume.Name {
		t.Errorf("the driver got the parameters %v", got)
	}
	// A volume of an old version is not annotated with its secret; the class names it.
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null,%q:null}}}`, provision.DeletionSecretName,
		provision.DeletionSecretNamespace)
	_, err = s.Client.CoreV1().PersistentVolumes().Patch(s.Ctx, volume.Name, types.MergePatchType, body, metav1.PatchOptions{})
	s.Must(err, "take the volume's secret away")
	s.DeleteClaim("claim")
	s.AwaitVolumeGone(volume.Name)
	s.ExpectReclaimed(volume)
	if s.LogContains(s.Provisioner, password) {
		t.Errorf("the log has the secret: %s", s.Provisioner.LogFile())
	}
}

func TestInvalidSecretNameDoesNotBlockOtherClaims(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	s.CreateClass(func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "${pvc.uid}",
			"csi.storage.k8s.io/provisioner-secret-namespace": "ns"}
	})
	claim := s.CreateClaim("claim", s.Namespace)
	if message := s.AwaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, "${pvc.uid}") ||
		!strings.Contains(message, s.Namespace) {
		t.Errorf("the event does not name the template and the class: %s", message)
	}
	s.CreateClaim("next", harness.DeleteClass)
	s.AwaitBound("next")
}

func TestClaimWithoutItsSecretIsDeletedWithoutCall(t *testing.T) {
	s := harness.Join(t, harness.Setup{})
	s.GrantSecrets()
	s.CreateClaim("evidence", harness.DeleteClass)
	s.AwaitBound("evidence")
	s.PassQueues() // until the pv-controller has the class in its cache
	s.CreateClass(func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{
			"csi.storage.k8s.io/provisioner-secret-name":      "missing",
			"csi.storage.k8s.io/provisioner-secret-namespace": s.Namespace,
		}
	})
	claim := s.CreateClaim("claim", s.Namespace)
	if message := s.AwaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, "missing") {
		t.Errorf("the event does not name the secret: %s", message)
	}
	s.DeleteClaim("claim")
	s.AwaitClaimGone("claim")
	calls, err := csimock.ReadCalls(s.Driver.CallLog)
	s.Must(err, "read call log")
	for _, call := range calls {
		if call.Name == "pvc-"+string(claim.UID) {
			t.Errorf("the driver was called: %+v", call)
		}
	}
}
