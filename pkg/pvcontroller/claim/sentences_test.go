package claim

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Every event of a claim is written out here, to be read: the volume belongs to a claim of the same namespace first, and
// then to one of another namespace.
func TestEventsAreSentences(t *testing.T) {
	const (
		requested = `The requested volume "v" is already bound to a different claim: it belongs to `
		twice     = `Two claims are bound to the same volume "v", this one is bound incorrectly: the volume belongs to `
	)
	for reason, want := range map[binding.Reason][2]string{
		binding.VolumeMissing:      same(`The requested volume "v" does not exist; the claim waits until a PersistentVolume of this name is created`),
		binding.VolumeMismatched:   same(`Cannot bind to requested volume "v": storageClassName does not match`),
		binding.VolumeBoundToOther: {requested + "claim other", requested + "a claim in another namespace"},
		binding.Misbound:           {twice + "claim other", twice + "a claim in another namespace"},
		binding.VolumeScrubbed:     same(`Volume "v" is not bound until the deletion for its former claim has ended, which may still remove data`),
		binding.ReferenceLost:      same("The bound claim has lost reference to PersistentVolume: spec.volumeName is empty. Data on the volume is lost to the claim until spec.volumeName is restored"),
		binding.VolumeLost:         same(`The bound claim has lost its PersistentVolume "v". Data on the volume is lost to the claim unless the PersistentVolume is restored`),
		binding.NothingFits:        same("There are no persistent volumes available for this claim and no storage class is set"),
		binding.AwaitsConsumer:     same("The claim is waiting for first consumer to be created before binding: no pod uses the claim yet"),
		binding.ClassMissing:       same(`storageclass.storage.k8s.io "class" not found`),
		binding.ProvisionerMissing: same(`no volume plugin matched name: example.com/driver, which is the provisioner of storage class "class"; the claim waits for a volume that satisfies it`),
		binding.AwaitsProvisioner:  same("Waiting for a volume to be created by the external provisioner 'example.com/driver' or manually by the system administrator; if this takes long, verify that the provisioner is running and correctly registered"),
	} {
		for i, namespace := range []string{"ns", "elsewhere"} {
			if event, _ := eventAbout(t, reason, namespace); event.Message != want[i] {
				t.Errorf("%s, claim of namespace %s:\n%s, want\n%s", reason, namespace, event.Message, want[i])
			}
		}
	}
	for _, silent := range []binding.Reason{
		binding.Binding, binding.IsBound, binding.ClaimDeleting, binding.DefaultClass, binding.ProvisioningOff,
		binding.PluginMigrated, binding.AwaitsPlugin,
	} {
		if event, sent := eventAbout(t, silent, "ns"); sent {
			t.Errorf("%s: event %q", silent, event.Message)
		}
	}
}

func same(message string) [2]string { return [2]string{message, message} }

// eventAbout returns the event of a claim that names volume v, which belongs to a claim of the namespace.
func eventAbout(t *testing.T, reason binding.Reason, namespace string) (controller.Event, bool) {
	t.Helper()
	claim := pendingClaim(naming("v"), ofClass("class"))
	c, _ := newController(t, claim, class("example.com/driver", immediate))
	c.Observer.Scrubbing = scrubbing(func(*v1.PersistentVolume) string { return "" })
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Spec: v1.PersistentVolumeSpec{Capacity: claim.Spec.Resources.Requests}}
	o := c.Observer.observe(claim, volume, false)
	if reason == binding.VolumeBoundToOther || reason == binding.Misbound {
		volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: namespace, Name: "other", UID: "o"}
	}
	return c.eventFor(o, reason)
}
