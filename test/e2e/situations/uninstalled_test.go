package situations

import (
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// uninstalledSnapshots are the situations of sidecars for snapshots that leave other traces.
var uninstalledSnapshots = []situation{
	{
		number: "27", name: "the snapshot controller is uninstalled with its definitions", alone: true,
		build: func(r *place) []string {
			r.createClaimOnly(claimAsSource)
			return r.deleteClaim()
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, step: (*place).stripClaim,
	},
	{
		number: "28p", name: "the only snapshotter deletes the snapshot, and names no driver", alone: true,
		build: func(r *place) []string {
			r.registerDriver(r.driverName())
			r.createSnapshotPair(true)
			r.finalizersOf(snapshots, r.Namespace, "snapshot", snapshotBound,
				"snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection")
			r.createOnlySidecar("registry.k8s.io/sig-storage/csi-snapshotter:v8.2.0", 1)
			r.createDeployment(metav1.NamespaceSystem, "snapshot-controller",
				"registry.k8s.io/sig-storage/snapshot-controller:v8.2.0", 2, 2)
			r.createLease(metav1.NamespaceSystem, "snapshot-controller-leader", "snapshot-controller-7d9f8-x", 0, day)
			r.deleteOf(contents, "", r.Namespace)
			return r.deleteOf(snapshots, r.Namespace, "snapshot")
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes}, step: (*place).stripSnapshot,
	},
	{
		number: "33p", name: "the only attacher wants no replica, and names no driver", alone: true,
		build: func(r *place) []string {
			r.registerDriver(r.driverName())
			r.createNode(r.Namespace, "True", 0)
			r.createOnlySidecar("registry.k8s.io/sig-storage/csi-attacher:v4.8.0", 0)
			attachment := r.attach("volume-of-"+r.Namespace, r.Namespace, "external-attacher/"+r.leaseName())
			return r.deleteOf(attachments, "", attachment.Name)
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone},
		step: func(r *place) { r.strip(attachments, "", "csi-"+r.Namespace) },
	},
	{
		number: "18p", name: "the only attacher lives, and its finalizer is left", alone: true,
		build: func(r *place) []string {
			r.createOnlySidecar("registry.k8s.io/sig-storage/csi-attacher:v4.8.0", 1)
			volume := r.releasedOnly()
			r.editFinalizers(volume, func([]string) []string { return []string{"external-attacher/" + r.leaseName()} })
			r.DeleteVolume(volume.Name)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "30q", name: "a claim waits for its volume, and only its class names the driver", alone: true,
		build: func(r *place) []string {
			r.registerDriver(r.driverName())
			r.createOnlySidecar(sidecarImage+":v5.2.0", 1)
			r.createSnapshotPair(true)
			r.finalizersOf(snapshots, r.Namespace, "snapshot", string(finalizer.SnapshotSource))
			r.createRestored()
			return r.deleteOf(snapshots, r.Namespace, "snapshot")
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.SnapshotRunning}, next: "delete pvc restored",
		step: func(r *place) { r.strip(snapshots, r.Namespace, "snapshot") },
	},
}

// createRestored creates the claim "restored" from the snapshot "snapshot", of a class of the
// situation's driver.
func (r *place) createRestored() {
	r.T.Helper()
	r.CreateClass(func(class *storagev1.StorageClass) { class.Provisioner = r.driverName() })
	r.CreateClaim("restored", r.Namespace, harness.FromSnapshot("snapshot"))
}
