package situations

import (
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

var (
	snapshots = snapshotv1.SchemeGroupVersion.WithResource("volumesnapshots")
	contents  = snapshotv1.SchemeGroupVersion.WithResource("volumesnapshotcontents")
	groups    = schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: "v1beta2",
		Resource: "volumegroupsnapshots"}
	classes     = storagev1.SchemeGroupVersion.WithResource("volumeattributesclasses")
	deviceUsers = resourcev1.SchemeGroupVersion.WithResource("resourceclaims")
)

const (
	snapshotBound    = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
	contentBound     = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	snapshotInGroup  = "snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection"
	claimAsSource    = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
	snapshotterImage = "csi-snapshotter:v8.4.0"
)

// takenSnapshots are the situations of snapshots and their contents.
var takenSnapshots = []situation{
	{
		number: "25", name: "a snapshot is being taken from the claim", alone: true,
		build: func(r *place) []string {
			r.createClaimOnly(claimAsSource)
			r.createSnapshotOf("claim")
			r.createDeployment(metav1.NamespaceSystem, "snapshot-controller", "example.com/snapshot-controller:v8.4.0", 1, 1)
			return r.deleteClaim()
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.SnapshotRunning}, next: "delete volumesnapshot snapshot",
		step: (*place).stripClaim,
	},
	{
		number: "25d", name: "the claim waits for a snapshot that is being deleted itself", alone: true,
		build: func(r *place) []string {
			r.createClaimOnly(claimAsSource)
			r.createSnapshotOf("claim")
			r.finalizersOf(snapshots, r.Namespace, "snapshot", strangerFinalizer)
			r.deleteOf(snapshots, r.Namespace, "snapshot")
			r.createDeployment(metav1.NamespaceSystem, "snapshot-controller", "example.com/snapshot-controller:v8.4.0", 1, 1)
			return r.deleteClaim()
		},
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.UnknownFinalizer}, next: "find the program",
		absent: "delete",
		step:   func(r *place) { r.strip(snapshots, r.Namespace, "snapshot"); r.stripClaim() },
	},
	{
		number: "26", name: "the snapshot controller is uninstalled", alone: true,
		build: func(r *place) []string {
			r.createClaimOnly(claimAsSource)
			r.createLease(metav1.NamespaceSystem, "snapshot-controller-leader", "snapshot-controller-0", time.Hour,
				15*time.Second)
			return r.deleteClaim()
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, step: (*place).stripClaim,
	},
	{
		number: "28", name: "the driver deletes the snapshot",
		build: func(r *place) []string {
			r.createSnapshotPair(true)
			r.serveSnapshots()
			r.deleteOf(contents, "", r.Namespace)
			return r.deleteOf(snapshots, r.Namespace, "snapshot")
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes}, step: (*place).stripSnapshot,
	},
	{
		number: "29", name: "the driver refuses, because a clone depends on the snapshot",
		build: func(r *place) []string {
			r.createSnapshotPair(false)
			r.serveSnapshots()
			args := r.deleteOf(contents, "", r.Namespace)
			content, err := r.dynamic().Resource(contents).Get(r.Ctx, r.Namespace, metav1.GetOptions{})
			r.Must(err, "get content")
			r.createWarning(content, "SnapshotDeleteError",
				"Failed to delete snapshot: rpc error: code = FailedPrecondition desc = a clone depends on the snapshot",
				time.Minute, "csi-snapshotter "+r.driverName())
			return args
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverRefuses}, next: "describe volumesnapshotcontent",
		step: func(r *place) { r.strip(contents, "", r.Namespace) },
	},
	{
		number: "30", name: "a claim that waits for its volume is restored from the snapshot",
		build: func(r *place) []string {
			r.createSnapshotPair(true)
			r.finalizersOf(snapshots, r.Namespace, "snapshot", string(finalizer.SnapshotSource))
			r.CreateClaim("restored", r.Namespace, harness.FromSnapshot("snapshot"), func(claim *v1.PersistentVolumeClaim) {
				claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": r.driverName()}
			})
			r.createSidecar("csi-provisioner:v6.3.0")
			return r.deleteOf(snapshots, r.Namespace, "snapshot")
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.SnapshotRunning}, next: "delete pvc restored",
		step: func(r *place) { r.strip(snapshots, r.Namespace, "snapshot") },
	},
	{
		number: "31", name: "the content is deleted, and its snapshot lives",
		build: func(r *place) []string {
			r.createSnapshotPair(true)
			r.serveSnapshots()
			return r.deleteOf(contents, "", r.Namespace)
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.SnapshotBound}, next: "delete volumesnapshot snapshot",
		step: func(r *place) { r.deleteOf(snapshots, r.Namespace, "snapshot"); r.stripSnapshot() },
	},
	{
		number: "32", name: "a member of a group of snapshots is deleted alone",
		build: func(r *place) []string {
			r.createSnapshotPair(true)
			r.createGroup()
			return r.deleteOf(snapshots, r.Namespace, "snapshot")
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.SnapshotBound}, next: "delete volumegroupsnapshot group",
		step: func(r *place) {
			r.deleteOf(groups, r.Namespace, "group")
			r.strip(snapshots, r.Namespace, "snapshot")
		},
	},
}

// otherUses are the situations of attachments, classes and resource claims.
var otherUses = []situation{
	{
		number: "33", name: "the attacher is uninstalled",
		build: func(r *place) []string {
			r.createNode(r.Namespace, v1.ConditionTrue, 0)
			attachment := r.attach("volume-of-"+r.Namespace, r.Namespace, "external-attacher/"+r.leaseName())
			r.createLease(r.Namespace, "external-attacher-leader-"+r.leaseName(), "attacher-0", time.Hour, 15*time.Second)
			return r.deleteOf(attachments, "", attachment.Name)
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone},
		step: func(r *place) { r.strip(attachments, "", "csi-"+r.Namespace) },
	},
	{
		number: "34", name: "a claim uses the attributes class",
		build: func(r *place) []string {
			_, err := r.Client.StorageV1().VolumeAttributesClasses().Create(r.Ctx, &storagev1.VolumeAttributesClass{
				ObjectMeta: metav1.ObjectMeta{Name: r.Namespace, Finalizers: []string{"kubernetes.io/vac-protection"}},
				DriverName: r.driverName(), Parameters: map[string]string{"iops": "1"},
			}, metav1.CreateOptions{})
			r.Must(err, "create class")
			r.CreateClaim("claim", r.Namespace,
				func(claim *v1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = &r.Namespace })
			return r.deleteOf(classes, "", r.Namespace)
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.InUse}, next: "get pvc claim",
		step: func(r *place) { r.strip(classes, "", r.Namespace) },
	},
	{
		number: "35", name: "a pod has reserved the resource claim",
		build: func(r *place) []string {
			r.createPodWithStatus(r.podWith(r.Namespace, "unused"), isReady)
			r.reserve("pod")
			return r.deleteOf(deviceUsers, r.Namespace, "devices")
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.InUse}, next: "delete pods pod",
		step: func(r *place) { r.strip(deviceUsers, r.Namespace, "devices") },
	},
}

// stripSnapshot removes the finalizers of content and snapshot, as the snapshotters do.
func (r *place) stripSnapshot() {
	r.T.Helper()
	r.strip(contents, "", r.Namespace)
	r.strip(snapshots, r.Namespace, "snapshot")
}

// reserve creates the ResourceClaim "devices" that the pod has reserved.
func (r *place) reserve(podName string) {
	r.T.Helper()
	pod, err := r.Client.CoreV1().Pods(r.Namespace).Get(r.Ctx, podName, metav1.GetOptions{})
	r.Must(err, "get pod")
	claim, err := r.Client.ResourceV1().ResourceClaims(r.Namespace).Create(r.Ctx, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "devices", Finalizers: []string{resourcev1.Finalizer}},
		Spec:       resourcev1.ResourceClaimSpec{},
	}, metav1.CreateOptions{})
	r.Must(err, "create ResourceClaim")
	claim.Status = resourcev1.ResourceClaimStatus{
		Allocation:  &resourcev1.AllocationResult{},
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
	}
	_, err = r.Client.ResourceV1().ResourceClaims(r.Namespace).UpdateStatus(r.Ctx, claim, metav1.UpdateOptions{})
	r.Must(err, "reserve ResourceClaim")
}

// deleteOf deletes the object and returns the arguments of why.
func (r *place) deleteOf(resource schema.GroupVersionResource, namespace, name string) []string {
	r.T.Helper()
	r.Must(r.dynamic().Resource(resource).Namespace(namespace).Delete(r.Ctx, name, metav1.DeleteOptions{}), "delete "+name)
	return []string{resource.GroupResource().String() + "/" + name}
}

// finalizersOf sets the finalizers of the object.
func (r *place) finalizersOf(resource schema.GroupVersionResource, namespace, name string, finalizers ...string) {
	r.T.Helper()
	object, err := r.dynamic().Resource(resource).Namespace(namespace).Get(r.Ctx, name, metav1.GetOptions{})
	r.Must(err, "get "+name)
	object.SetFinalizers(finalizers)
	_, err = r.dynamic().Resource(resource).Namespace(namespace).Update(r.Ctx, object, metav1.UpdateOptions{})
	r.Must(err, "set finalizers of "+name)
}

// createSnapshotOf creates the snapshot "snapshot" of the claim, which is not ready.
func (r *place) createSnapshotOf(claim string) {
	r.T.Helper()
	_, err := r.SnapshotClient().SnapshotV1().VolumeSnapshots(r.Namespace).Create(r.Ctx, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: "snapshot"},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}},
	}, metav1.CreateOptions{})
	r.Must(err, "create snapshot")
}

// createSnapshotPair creates the content of the snapshot "snapshot", and unless the snapshot
// is gone already, the snapshot itself.
func (r *place) createSnapshotPair(lives bool) {
	r.T.Helper()
	client := r.SnapshotClient().SnapshotV1()
	ref := v1.ObjectReference{Namespace: r.Namespace, Name: "snapshot", UID: "gone"}
	if lives {
		snapshot, err := client.VolumeSnapshots(r.Namespace).Create(r.Ctx, &snapshotv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: "snapshot", Finalizers: []string{snapshotBound}},
			Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: &r.Namespace}},
		}, metav1.CreateOptions{})
		r.Must(err, "create snapshot")
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &r.Namespace,
			ReadyToUse: ptr.To(true)}
		_, err = client.VolumeSnapshots(r.Namespace).UpdateStatus(r.Ctx, snapshot, metav1.UpdateOptions{})
		r.Must(err, "set status of snapshot")
		ref.UID = snapshot.UID
	}
	_, err := client.VolumeSnapshotContents().Create(r.Ctx, &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: r.Namespace, Finalizers: []string{contentBound}},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: r.driverName(), DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete, VolumeSnapshotRef: ref,
			Source: snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: ptr.To("taken")},
		},
	}, metav1.CreateOptions{})
	r.Must(err, "create content")
}

// serveSnapshots creates a ready Deployment of csi-snapshotter beside the situation's driver,
// and its Lease.
func (r *place) serveSnapshots() {
	r.T.Helper()
	r.createDeployment(r.Namespace, "snapshotter", "example.com/"+snapshotterImage, 1, 1)
	r.createLease(r.Namespace, "external-snapshotter-leader-"+r.leaseName(), "snapshotter-0", 0, day)
}

// createGroup makes the snapshot a member of the group "group".
func (r *place) createGroup() {
	r.T.Helper()
	r.Until("the API server serves groups of snapshots", func() bool {
		_, err := r.dynamic().Resource(groups).List(r.Ctx, metav1.ListOptions{})
		return err == nil
	})
	r.apply(groups, r.Namespace, map[string]any{
		"apiVersion": groups.GroupVersion().String(), "kind": "VolumeGroupSnapshot", "metadata": map[string]any{"name": "group", "namespace": r.Namespace},
		"spec": map[string]any{"source": map[string]any{"volumeGroupSnapshotContentName": "group"}},
	})
	client := r.SnapshotClient().SnapshotV1().VolumeSnapshots(r.Namespace)
	r.finalizersOf(snapshots, r.Namespace, "snapshot", snapshotInGroup)
	snapshot, err := client.Get(r.Ctx, "snapshot", metav1.GetOptions{})
	r.Must(err, "get snapshot")
	snapshot.Status.VolumeGroupSnapshotName = ptr.To("group")
	_, err = client.UpdateStatus(r.Ctx, snapshot, metav1.UpdateOptions{})
	r.Must(err, "set group of snapshot")
}
