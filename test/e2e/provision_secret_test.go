package e2e

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

func TestASecretThatAClassNamesIsNeededAndToldNobody(t *testing.T) {
	t.Parallel()
	const password = "correct-horse-battery-staple"
	s := enter(t, shared(t, setup{honor: true}))
	s.letSecretsBeRead()
	s = s.beside(s.namespace+".secret", "--secrets=password="+password,
		"-v=9 --extra-create-metadata --volume-name-prefix=vol --volume-name-uuid-length=16 --retry-interval-start=100ms")
	s.createClass(func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{
			"csi.storage.k8s.io/provisioner-secret-name":      "${pvc.name}-key",
			"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
			"csi.storage.k8s.io/node-stage-secret-name":       "${pv.name}-${pvc.annotations['example.com/key']}",
			"csi.storage.k8s.io/node-stage-secret-namespace":  s.namespace,
		}
	})
	claim := s.createClaim("claim", s.namespace, func(c *v1.PersistentVolumeClaim) { c.Annotations = map[string]string{"example.com/key": "key"} })
	if message := s.awaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, s.namespace+"/claim-key") {
		t.Errorf("the event does not name the secret: %s", message)
	}
	secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "claim-key"}, StringData: map[string]string{"password": password}}
	_, err := s.client.CoreV1().Secrets(s.namespace).Create(s.ctx, secret, metav1.CreateOptions{})
	s.must(err, "create secret")

	volume := s.awaitBound("claim")
	if volume.Annotations[provision.DeletionSecretName] != "claim-key" || volume.Annotations[provision.DeletionSecretNamespace] != s.namespace {
		t.Errorf("the volume does not name the secret for its deletion: %v", volume.Annotations)
	}
	if staged := volume.Spec.CSI.NodeStageSecretRef; staged == nil || staged.Name != volume.Name+"-key" || staged.Namespace != s.namespace {
		t.Errorf("the secret for staging is %v", staged)
	}
	if len(volume.Name) != len("vol-")+16 || !strings.HasPrefix(volume.Name, "vol-") {
		t.Errorf("the volume is called %s", volume.Name)
	}
	if got := s.inStorage(volume).Parameters; len(got) != 3 || got["csi.storage.k8s.io/pvc/name"] != "claim" || got["csi.storage.k8s.io/pv/name"] != volume.Name {
		t.Errorf("the driver got the parameters %v", got)
	}
	// A volume from before volumes named their secret: its class does.
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null,%q:null}}}`, provision.DeletionSecretName, provision.DeletionSecretNamespace)
	_, err = s.client.CoreV1().PersistentVolumes().Patch(s.ctx, volume.Name, types.MergePatchType, body, metav1.PatchOptions{})
	s.must(err, "take the volume's secret away")
	s.deleteClaim("claim")
	s.awaitVolumeGone(volume.Name)
	s.expectReclaimed(volume)
	if s.logContains(s.provisioner, password) {
		t.Errorf("the provisioner has logged the secret: %s", s.provisioner.LogFile())
	}
}

func TestASecretThatIsNamedWronglyIsRefusedAndTheNextClaimIsServed(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s.createClass(func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{"csi.storage.k8s.io/provisioner-secret-name": "${pvc.uid}", "csi.storage.k8s.io/provisioner-secret-namespace": "ns"}
	})
	claim := s.createClaim("claim", s.namespace)
	if message := s.awaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, "${pvc.uid}") || !strings.Contains(message, s.namespace) {
		t.Errorf("the event does not name token and class: %s", message)
	}
	s.createClaim("next", deleteClass)
	s.awaitBound("next")
}

// The hold came with the request for a volume, from the pv-controller, and the driver
// was never asked: the provisioner knows both.
func TestAClaimWhoseSecretIsMissingGoesWithoutACall(t *testing.T) {
	t.Parallel()
	s := enter(t, shared(t, setup{honor: true}))
	s.letSecretsBeRead()
	s.createClaim("evidence", deleteClass)
	s.awaitBound("evidence")
	s.passQueues() // the pv-controller has seen by then that claims of the driver are held
	s.createClass(func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{
			"csi.storage.k8s.io/provisioner-secret-name": "missing", "csi.storage.k8s.io/provisioner-secret-namespace": s.namespace,
		}
	})
	claim := s.createClaim("claim", s.namespace)
	if message := s.awaitEvent(claim, "ProvisioningFailed"); !strings.Contains(message, "missing") {
		t.Errorf("the event does not name the secret: %s", message)
	}
	s.awaitClaim("claim", "is not held", func(c *v1.PersistentVolumeClaim) bool { return !finalizer.Has(c.Finalizers, finalizer.Provisioning) })
	s.deleteClaim("claim")
	s.awaitClaimGone("claim")
	calls, err := csimock.ReadCalls(s.driver.CallLog)
	s.must(err, "read call log")
	for _, call := range calls {
		if call.Name == "pvc-"+string(claim.UID) {
			t.Errorf("the driver was asked: %+v", call)
		}
	}
}
