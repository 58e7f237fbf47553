package situations

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

// keptVolumes are the situations of PersistentVolumes whose driver is not asked to delete.
var keptVolumes = []situation{
	{
		number: "06", name: "the volume is attached to a live node",
		build: func(r *place) []string {
			return r.attachedVolume(func() { r.createNode(r.Namespace, v1.ConditionTrue, 0); r.attach(r.Namespace+"-disk", r.Namespace) })
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.VolumeAttached}, step: (*place).detachAndReclaim,
	},
	{
		number: "07", name: "the attacher cannot detach the volume",
		build: func(r *place) []string {
			return r.attachedVolume(func() {
				r.createNode(r.Namespace, v1.ConditionTrue, 0)
				attachment := r.attach(r.Namespace+"-disk", r.Namespace, "external-attacher/"+r.leaseName())
				r.detachFails(attachment, "rpc error: code = Internal desc = the disk is busy")
				r.Must(r.Client.StorageV1().VolumeAttachments().Delete(r.Ctx, attachment.Name, metav1.DeleteOptions{}),
					"delete VolumeAttachment")
			})
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DetachFailed}, next: "describe volumeattachment",
		step: (*place).detachAndReclaim,
	},
	{
		number: "08", name: "the volume is attached to a node that is gone",
		build: func(r *place) []string {
			return r.attachedVolume(func() { r.attach(r.Namespace+"-disk", r.Namespace+"-gone") })
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.NodeGone}, next: "last resort, only if you saw",
		absent: "out-of-service", step: (*place).detachAndReclaim,
	},
	{
		number: "09", name: "the secret of the deletion is missing",
		programs: loops,
		build: func(r *place) []string {
			r.GrantSecrets()
			r.serve()
			volume := r.deletePVThenClaim(func(volume *v1.PersistentVolume) {
				r.annotateVolume(volume.Name, map[string]string{
					"volume.kubernetes.io/provisioner-deletion-secret-name":      "credentials",
					"volume.kubernetes.io/provisioner-deletion-secret-namespace": r.Namespace,
				})
			})
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.SecretMissing}, next: "create secret generic credentials",
		step: func(r *place) { r.CreateSecret(r.Namespace) },
	},
	{
		number: "12", name: "an entry of the journal is open",
		build: func(r *place) []string {
			volume := r.released()
			r.createLease(r.Namespace, r.leaseName(), "pod_exeunt", 0, day)
			r.createEntry(volume, journal.KindActive)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.JournalEntry}, next: "journal list",
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "13", name: "an entry of the journal is unresolved",
		build: func(r *place) []string {
			volume := r.released()
			r.createLease(r.Namespace, r.leaseName(), "pod_exeunt", 0, day)
			r.createEntry(volume, journal.KindUnresolved)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.dropEntries(); r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "14", name: "upstream took over a volume that Exeunt has marked",
		build: func(r *place) []string {
			volume := r.releasedOnly(func(volume *v1.PersistentVolume) { volume.Finalizers = []string{"example.com/later"} })
			r.annotateVolume(volume.Name, map[string]string{reclaim.Annotation: reclaim.AnnotationPending})
			r.editFinalizers(volume, func([]string) []string { return []string{string(finalizer.VolumeProtection)} })
			r.createSidecar("csi-provisioner:v6.3.0")
			r.DeleteVolume(volume.Name)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.TooLateToProtect}, next: "provisioner of Exeunt",
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "14b", name: "csi-provisioner leads, and a bound volume was deleted before it got its finalizer",
		build: func(r *place) []string {
			claim := r.CreateClaim("claim", r.Namespace,
				func(claim *v1.PersistentVolumeClaim) { claim.Spec.VolumeName = r.Namespace + "-disk" })
			volume := r.CreateVolume("disk", v1.PersistentVolumeReclaimDelete, r.ofOwnDriver, func(volume *v1.PersistentVolume) {
				volume.Finalizers, volume.Spec.ClaimRef.UID = nil, claim.UID
			})
			r.setPhase(volume.Name, v1.VolumeBound, "")
			r.createSidecar("csi-provisioner:v6.3.0")
			r.DeleteVolume(volume.Name)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ClaimExists, blocker.TooLateToProtect},
		next: "run provisioner and pv-controller of Exeunt before the claim goes", absent: "deletes the data",
		step: func(r *place) { r.deleteClaim(); r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "17a", name: "csi-provisioner leads, and the deleted volume is Available",
		build: func(r *place) []string {
			volume := r.CreateVolume("disk", v1.PersistentVolumeReclaimDelete, r.ofOwnDriver,
				func(volume *v1.PersistentVolume) { volume.Spec.ClaimRef = nil })
			r.editFinalizers(volume, func(list []string) []string { return finalizer.Without(list, finalizer.VolumeProtection) })
			r.setPhase(volume.Name, v1.VolumeAvailable, "")
			r.createSidecar("csi-provisioner:v6.3.0")
			r.DeleteVolume(volume.Name)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.PhaseNotReclaimed}, next: "Retain",
		step: func(r *place) {
			r.SetPolicy(r.Namespace+"-disk", v1.PersistentVolumeReclaimRetain)
			r.reclaim(r.Namespace + "-disk") // csi-provisioner does for Retain
		},
	},
	{
		number: "17f", name: "csi-provisioner leads, and the volume is Failed",
		build: func(r *place) []string {
			volume := r.releasedOnly(func(volume *v1.PersistentVolume) { volume.Finalizers = nil })
			r.setPhase(volume.Name, v1.VolumeFailed, "No recycler plugin found for the volume!")
			r.createSidecar("csi-provisioner:v6.3.0")
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.PhaseNotReclaimed}, next: "Retain",
		step: func(r *place) {
			r.SetPolicy(r.Namespace+"-disk", v1.PersistentVolumeReclaimRetain)
			r.DeleteVolume(r.Namespace + "-disk")
		},
	},
	{
		number: "18", name: "the finalizer of the attacher is left without an attachment",
		build: func(r *place) []string {
			volume := r.released()
			r.editFinalizers(volume, func([]string) []string { return nil })
			return r.leftByAttacher()
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs},
		step: func(r *place) { r.reclaim(r.Namespace + "-left") },
	},
	{
		number: "a", name: "the driver takes twenty minutes without an error",
		build: func(r *place) []string {
			volume := r.released()
			r.createSidecar("csi-provisioner:v6.3.0")
			r.createEvent(r.asObject(volume), v1.EventTypeNormal, "VolumeDelete",
				"persistentvolume is still attached to node a, waiting for detach", 20*time.Minute, r.driverName())
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "b", name: "the leader of the provisioner changed three seconds ago",
		build: func(r *place) []string {
			volume := r.released()
			r.createDeployment(r.Namespace, "controller", "example.com/csi-provisioner:v6.3.0", 2, 1)
			r.createLease(r.Namespace, r.leaseName(), "controller-1", 3*time.Second, 15*time.Second)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "02e", name: "an error of two hours ago",
		build: func(r *place) []string {
			volume := r.released()
			r.createSidecar("csi-provisioner:v6.3.0")
			r.createWarning(r.asObject(volume), "VolumeFailedDelete", "rpc error: code = Internal desc = failed", 2*time.Hour,
				r.driverName())
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
}

// attachedVolume deletes a released volume whose programs live. attach creates its attachment.
func (r *place) attachedVolume(attach func()) []string {
	r.T.Helper()
	volume := r.released()
	r.createSidecar("csi-provisioner:v6.3.0")
	r.createLease(r.Namespace, "external-attacher-leader-"+r.leaseName(), "attacher", 0, day)
	attach()
	return []string{"pv/" + volume.Name}
}

// detachAndReclaim ends attachment and volume, as attacher and provisioner do.
func (r *place) detachAndReclaim() {
	r.T.Helper()
	r.detach()
	r.reclaim(r.Namespace + "-disk")
}

// leftByAttacher deletes a volume with the finalizer of the attacher alone.
func (r *place) leftByAttacher() []string {
	r.T.Helper()
	name := "external-attacher/" + r.leaseName()
	volume := r.CreateVolume("left", v1.PersistentVolumeReclaimDelete, r.ofOwnDriver,
		func(volume *v1.PersistentVolume) { volume.Finalizers = []string{name} })
	r.editFinalizers(volume, func([]string) []string { return []string{name} })
	r.setPhase(volume.Name, v1.VolumeReleased, "")
	r.createLease(r.Namespace, "external-attacher-leader-"+r.leaseName(), "attacher", 0, day)
	r.DeleteVolume(volume.Name)
	return []string{"pv/" + volume.Name}
}

// annotateVolume sets annotations of the volume.
func (r *place) annotateVolume(name string, annotations map[string]string) {
	r.T.Helper()
	volume, err := r.Client.CoreV1().PersistentVolumes().Get(r.Ctx, name, metav1.GetOptions{})
	r.Must(err, "get volume")
	if volume.Annotations == nil {
		volume.Annotations = map[string]string{}
	}
	for key, value := range annotations {
		volume.Annotations[key] = value
	}
	_, err = r.Client.CoreV1().PersistentVolumes().Update(r.Ctx, volume, metav1.UpdateOptions{})
	r.Must(err, "annotate volume")
}

// createEntry creates a Lease of the journal with an entry for the claim of the volume.
func (r *place) createEntry(volume *v1.PersistentVolume, kind journal.Kind) {
	r.T.Helper()
	uid := volume.Spec.ClaimRef.UID
	entry := journal.Entry{
		UID: uid, Namespace: r.Namespace, Name: "claim",
		Request: journal.Request{Payload: &journal.Payload{Kind: "situations", Volume: "pvc-" + string(uid)}},
		Volume:  &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(uid)}},
	}
	if kind == journal.KindUnresolved {
		entry.CustodyBroken = true
		entry.Unresolved = &journal.Unresolved{Reason: "another program was the leader meanwhile",
			Since: time.Now().Add(-time.Hour).Unix()}
	}
	text, err := journal.Encode(entry)
	r.Must(err, "encode entry")
	j := journal.Journal{Namespace: deploy.Namespace, Driver: r.driverName()}
	lease := j.Lease(kind, 0, "pod_exeunt", journal.Custody{Written: 1}, map[types.UID]string{uid: text})
	_, err = r.Client.CoordinationV1().Leases(deploy.Namespace).Create(r.Ctx, lease, metav1.CreateOptions{})
	r.Must(err, "create Lease of the journal")
}

// dropEntries ends the unresolved entries, as "exeunt journal drop" does.
func (r *place) dropEntries() {
	r.T.Helper()
	for _, volume := range r.ownVolumes() {
		_, stderr, code := r.run("journal", "drop", string(volume.Spec.ClaimRef.UID), "--yes")
		if code != 0 {
			r.T.Fatalf("exeunt journal drop: %s", stderr)
		}
	}
}

// ownVolumes returns the volumes of claims in the situation's namespace.
func (r *place) ownVolumes() []v1.PersistentVolume {
	r.T.Helper()
	list, err := r.Client.CoreV1().PersistentVolumes().List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list volumes")
	var own []v1.PersistentVolume
	for _, volume := range list.Items {
		if ref := volume.Spec.ClaimRef; ref != nil && ref.Namespace == r.Namespace {
			own = append(own, volume)
		}
	}
	return own
}
