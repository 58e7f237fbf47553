package blocker

// Reason says what a deletion waits for. The list is closed.
type Reason int

// The reasons, in the order of the table below.
const (
	ClaimExists Reason = iota
	PodUsesClaim
	VolumeAttached
	DetachFailed
	DriverDeletes
	DriverRefuses
	DriverMissing
	SecretMissing
	HandleShared
	CloneRunning
	SnapshotRunning
	SnapshotBound
	JournalEntry
	FeatureOff
	PhaseNotReclaimed
	TooLateToProtect
	PolicyRetain
	GracePeriod
	LeftInGrace
	KubeletStopping
	NodeUnreachable
	NodeGone
	BudgetFull
	DoNotDisrupt
	EvictionRefused
	PodsGoFirst
	MachineRuns
	NodeEnded
	ClusterProtected
	TeardownArmed
	TeardownStopped
	TeardownRuns
	TeardownEnded
	FreezeRefuses
	ControllerActs
	ControllerFails
	ControllerGone
	ControllerUnseen
	UnknownFinalizer
	InUse
	DependentsRemain
	DependentsUnseen
	OwnerCycle
	OrphanPending
	OwnerUnresolvable
	ContentRemains
	APIUnreachable
	AdmissionUnreachable
	AdmissionDenies
	ConversionFails
	ObjectInvalid
	ObjectUnreadable
	Recreated
)

// Description is the row of a reason. "exeunt explain", the documentation, the JSON schema,
// the event DeletionWaiting and the label "blocker" of the metrics are made from these rows.
type Description struct {
	Name string
	// Meaning is a sentence for users.
	Meaning string
	// Look says where to look.
	Look string
	// Force says what it costs to end the wait by force.
	Force string
}

// descriptions has one row per reason.
var descriptions = [...]Description{
	ClaimExists: {
		Name:    "ClaimExists",
		Meaning: "The volume is bound to a claim that exists.",
		Look:    "kubectl get pvc, the claim that spec.claimRef names.",
		Force:   "Without pv-protection the volume object goes while the claim uses its data; the claim becomes Lost.",
	},
	PodUsesClaim: {
		Name:    "PodUsesClaim",
		Meaning: "A pod uses the claim. A pod that has finished counts until it is deleted.",
		Look:    "kubectl get pods, the pods that mount the claim.",
		Force:   "Without pvc-protection the claim goes while the pod writes to its volume; the data may be deleted under it.",
	},
	VolumeAttached: {
		Name:    "VolumeAttached",
		Meaning: "A VolumeAttachment says that the volume is attached to a node.",
		Look:    "kubectl get volumeattachments; the pods on the node that use the volume.",
		Force:   "The driver deletes a disk that a node still writes to, or refuses.",
	},
	DetachFailed: {
		Name:    "DetachFailed",
		Meaning: "The driver reports an error when it detaches the volume.",
		Look:    "status.detachError of the VolumeAttachment; the log of the attacher.",
		Force:   "Another node may attach a disk that the first node still writes to: the data is damaged.",
	},
	DriverDeletes: {
		Name:    "DriverDeletes",
		Meaning: "The driver is asked to delete the volume or the snapshot, and reports no error.",
		Look:    "The log of the provisioner or of csi-snapshotter beside the driver.",
		Force:   "The disk stays in storage and is paid for, and nobody knows of it any more.",
	},
	DriverRefuses: {
		Name:    "DriverRefuses",
		Meaning: "The driver answers the deletion with an error, now and again.",
		Look:    "The event VolumeFailedDelete and its message; the log of the driver.",
		Force:   "The disk stays in storage and is paid for, and nobody knows of it any more.",
	},
	DriverMissing: {
		Name:    "DriverMissing",
		Meaning: "The driver or plugin that has to delete the volume is not installed, or not running.",
		Look:    "kubectl get csidrivers; the workload of the driver and its Lease.",
		Force:   "The disk stays in storage and is paid for, and nobody knows of it any more.",
	},
	SecretMissing: {
		Name:    "SecretMissing",
		Meaning: "The secret that the driver needs for the deletion does not exist.",
		Look:    "The annotations volume.kubernetes.io/provisioner-deletion-secret-name and -namespace of the volume. Only the provisioner of Exeunt waits for the secret: csi-provisioner does not check this.",
		Force:   "The disk stays in storage and is paid for, and nobody knows of it any more.",
	},
	HandleShared: {
		Name:    "HandleShared",
		Meaning: "Another PersistentVolume names the same disk: the disk of one must not go while the other exists.",
		Look:    "The PersistentVolume with the same driver and volume handle. Only the provisioner of Exeunt keeps the disk: csi-provisioner does not check this.",
		Force:   "The disk of the other volume is deleted with its data.",
	},
	CloneRunning: {
		Name:    "CloneRunning",
		Meaning: "A volume is being cloned from the claim.",
		Look:    "The claims whose dataSource is this claim.",
		Force:   "The clone fails or is incomplete.",
	},
	SnapshotRunning: {
		Name:    "SnapshotRunning",
		Meaning: "A snapshot is being taken from the claim, or a volume is being restored from the snapshot.",
		Look:    "The VolumeSnapshots of the claim, or the claims whose dataSource is the snapshot.",
		Force:   "The snapshot or the restored volume fails or is incomplete.",
	},
	SnapshotBound: {
		Name:    "SnapshotBound",
		Meaning: "The content belongs to a VolumeSnapshot, or the snapshot to a group, that exists.",
		Look:    "The VolumeSnapshot in spec.volumeSnapshotRef, or the group in status.volumeGroupSnapshotName.",
		Force:   "The snapshot names a content that is gone; it can no longer be restored.",
	},
	JournalEntry: {
		Name:    "JournalEntry",
		Meaning: "The provisioning journal has an entry for the claim: a CreateVolume call whose outcome is not known.",
		Look:    "exeunt journal list.",
		Force:   "A volume that the call created is known to the storage system only.",
	},
	FeatureOff: {
		Name:    "FeatureOff",
		Meaning: "The provisioner that serves the driver is older than the finalizer, or runs with HonorPVReclaimPolicy=false.",
		Look:    "The image and the arguments of the provisioner.",
		Force:   "The disk stays in storage and is paid for, and nobody knows of it any more.",
	},
	PhaseNotReclaimed: {
		Name:    "PhaseNotReclaimed",
		Meaning: "csi-provisioner reclaims volumes in the phase Released only, and this volume is in another phase, such as Failed or Available.",
		Look:    "status.phase of the volume; the image of the provisioner that leads for the driver. The provisioner of Exeunt ends these deletions.",
		Force:   "The disk stays in storage and is paid for, and nobody knows of it any more.",
	},
	TooLateToProtect: {
		Name:    "TooLateToProtect",
		Meaning: "The volume was deleted before it got its finalizer: csi-provisioner leaves its disk behind. Only the provisioner of Exeunt deletes the disk, once the claim is gone.",
		Look:    "The finalizers and the annotation exeunt.io/reclaim of the volume; the provisioner that leads for the driver.",
		Force:   "The disk stays in storage and is paid for, and nobody knows of it any more.",
	},
	PolicyRetain: {
		Name:    "PolicyRetain",
		Meaning: "The reclaim policy is Retain: the volume is kept on purpose. Nothing waits.",
		Look:    "spec.persistentVolumeReclaimPolicy of the volume.",
		Force:   "Nothing: delete the PersistentVolume to forget the disk, or set the policy Delete to delete the disk.",
	},
	GracePeriod: {
		Name:    "GracePeriod",
		Meaning: "The grace period of the pod, or the custom resource, has not ended.",
		Look:    "metadata.deletionTimestamp, which is the end of the grace period if metadata.deletionGracePeriodSeconds is above 0; else the annotation exeunt.io/deletion-window.",
		Force:   "The processes of the pod may still run and write to its volumes; what the custom resource stands for is not stopped cleanly.",
	},
	LeftInGrace: {
		Name:    "LeftInGrace",
		Meaning: "The custom resource has no finalizer, and a grace period in metadata.deletionGracePeriodSeconds: the API server does not remove it by itself, before its deadline or after.",
		Look:    "metadata.finalizers and metadata.deletionGracePeriodSeconds of the object.",
		Force:   "Nothing: delete the object once more, which removes it at once.",
	},
	KubeletStopping: {
		Name:    "KubeletStopping",
		Meaning: "The kubelet stops the pod, and takes longer than the grace period.",
		Look:    "The events of the pod, such as FailedKillPod or a failed unmount; the log of the kubelet.",
		Force:   "The processes of the pod may still run and write to its volumes.",
	},
	NodeUnreachable: {
		Name:    "NodeUnreachable",
		Meaning: "The node does not report: its kubelet cannot stop the pod.",
		Look:    "kubectl get node; the condition Ready and the node Lease.",
		Force:   "The processes may still run on the node, and write to its disks. Only a machine that was seen switched off is safe to take as out of service.",
	},
	NodeGone: {
		Name:    "NodeGone",
		Meaning: "The node object does not exist: no kubelet will stop the pod or detach the volume, and no provisioner of the node will delete the disk.",
		Look:    "kubectl get nodes.",
		Force:   "If the machine still runs, its processes still write to the volume.",
	},
	BudgetFull: {
		Name:    "BudgetFull",
		Meaning: "The node is drained, and a PodDisruptionBudget allows no eviction of the pod now.",
		Look:    "kubectl get poddisruptionbudgets; why other pods of the budget are not Ready.",
		Force:   "More pods of the application are away at once than its budget allows: it may lose service, or its quorum.",
	},
	DoNotDisrupt: {
		Name:    "DoNotDisrupt",
		Meaning: "The node is drained, and the pod says karpenter.sh/do-not-disrupt.",
		Look:    "The annotation of the pod.",
		Force:   "The work that the pod must not interrupt is lost.",
	},
	EvictionRefused: {
		Name:    "EvictionRefused",
		Meaning: "The node is drained, and the API server or a webhook refuses the eviction or the deletion of the pod.",
		Look:    "The budgets that select the pod: more than one refuses each eviction; the events of the pod and of the node.",
		Force:   "Whatever refuses the eviction guards the pod no more.",
	},
	PodsGoFirst: {
		Name:    "PodsGoFirst",
		Meaning: "The node is drained in an order: ordinary pods, critical ones, volumes, DaemonSets. The pod waits for its turn.",
		Look:    "The other pods and attachments of the node.",
		Force:   "What the pod does for others, such as unmounting their volumes, is not done.",
	},
	MachineRuns: {
		Name:    "MachineRuns",
		Meaning: "Pods or volumes of the node can be freed only once its machine is proven to be off, and it is not.",
		Look:    "The events of the node; the machine; the program that stops it.",
		Force:   "A machine that runs writes to disks that another node attaches: the data is damaged.",
	},
	NodeEnded: {
		Name:    "NodeEnded",
		Meaning: "The node is gone. The report of node-terminator says which pods were cut short, and what is left.",
		Look:    "The ConfigMap with the report, which is kept for three days.",
		Force:   "Nothing: nothing waits.",
	},
	ClusterProtected: {
		Name:    "ClusterProtected",
		Meaning: "No teardown of the cluster is permitted: Alive is protected, or its permission is missing or has ended. Nothing waits.",
		Look:    "spec of the Alive named cluster: protected, confirm, confirmedAt and timeout.",
		Force:   "Nothing: nothing waits.",
	},
	TeardownArmed: {
		Name:    "TeardownArmed",
		Meaning: "The teardown of the cluster is permitted until its deadline, and begins with the deletion of Alive. Nothing waits.",
		Look:    "The condition Ready of Alive; exeunt teardown, which prints the plan.",
		Force:   "The disks and load balancers of the cluster are deleted.",
	},
	TeardownStopped: {
		Name:    "TeardownStopped",
		Meaning: "The teardown of the cluster is stopped: nothing new is deleted until a person permits it again, or ends it.",
		Look:    "spec and status of Alive: phase, reason and message; who wrote spec.protected, in its managedFields.",
		Force:   "Nothing says any more that everything was deleted: disks and load balancers stay in the cloud and are paid for.",
	},
	TeardownRuns: {
		Name:    "TeardownRuns",
		Meaning: "The cluster is torn down by a runner that was seen alive: Alive goes once everything to delete is gone.",
		Look:    "status.remaining of Alive; the Lease exeunt-teardown of namespace exeunt-system names the runner.",
		Force:   "Nothing says any more that everything was deleted: disks and load balancers stay in the cloud and are paid for.",
	},
	TeardownEnded: {
		Name:    "TeardownEnded",
		Meaning: "Alive is gone. The record of the teardown says whether everything to delete was gone by then.",
		Look:    "The ConfigMap exeunt-teardown-report of namespace exeunt-system.",
		Force:   "Nothing: nothing waits.",
	},
	FreezeRefuses: {
		Name:    "FreezeRefuses",
		Meaning: "The freeze of a teardown refuses new claims, pods that use claims, volume snapshots and load balancers. It stays after the teardown.",
		Look:    "The ValidatingAdmissionPolicy exeunt-teardown-freeze, and Alive.",
		Force:   "exeunt teardown remove takes the freeze away: in a cluster that is torn down, owners fill new volumes, which nobody deletes.",
	},
	ControllerActs: {
		Name:    "ControllerActs",
		Meaning: "The controller that removes the finalizer was seen alive and reports no error.",
		Look:    "The log of the controller.",
		Force:   "What the controller cleans up stays behind: whatever it made outside of the cluster.",
	},
	ControllerFails: {
		Name:    "ControllerFails",
		Meaning: "The controller that removes the finalizer runs, and reports an error now, or crashes.",
		Look:    "The events and conditions of the object; the log of the controller.",
		Force:   "What the controller cleans up stays behind: whatever it made outside of the cluster.",
	},
	ControllerGone: {
		Name:    "ControllerGone",
		Meaning: "The controller that removes the finalizer is proven gone: no replica is wanted or ready, and its Lease has run out.",
		Look:    "The workload and the Lease of the controller.",
		Force:   "What the controller cleans up stays behind: whatever it made outside of the cluster.",
	},
	ControllerUnseen: {
		Name:    "ControllerUnseen",
		Meaning: "The controller that removes the finalizer was not seen at work; it may run outside of the cluster.",
		Look:    "The control plane or the provider of the cluster; a leader Lease that has run out although pods are ready.",
		Force:   "What the controller cleans up stays behind; or the controller, which lives, is surprised by it.",
	},
	UnknownFinalizer: {
		Name:    "UnknownFinalizer",
		Meaning: "No known controller sets this finalizer.",
		Look:    "The manager in metadata.managedFields; the programs that are listed.",
		Force:   "What the finalizer protects is not known: anything may be left behind.",
	},
	InUse: {
		Name:    "InUse",
		Meaning: "Another object uses this object.",
		Look:    "The objects that are listed.",
		Force:   "The users of the object lose what they rely on.",
	},
	DependentsRemain: {
		Name:    "DependentsRemain",
		Meaning: "The object is deleted in the foreground: dependents that block its deletion exist.",
		Look:    "The dependents that are listed, with blockOwnerDeletion true in their ownerReferences.",
		Force:   "The dependents go later, in the background, or not at all.",
	},
	DependentsUnseen: {
		Name:    "DependentsUnseen",
		Meaning: "Whether dependents remain is not known: a kind could not be listed.",
		Look:    "The kinds that are listed as incomplete.",
		Force:   "Dependents may be left behind.",
	},
	OwnerCycle: {
		Name:    "OwnerCycle",
		Meaning: "Objects that are deleted in the foreground own each other: none can go first. garbage-collector of Exeunt releases them once no other dependent blocks one.",
		Look:    "The ownerReferences of the objects that are listed.",
		Force:   "Nothing, if every member of the cycle is to go: one owner reference is removed.",
	},
	OrphanPending: {
		Name:    "OrphanPending",
		Meaning: "The dependents of the object are being kept: the garbage collector removes their owner references.",
		Look:    "The log of the garbage collector.",
		Force:   "Dependents that still name the object are deleted with it.",
	},
	OwnerUnresolvable: {
		Name:    "OwnerUnresolvable",
		Meaning: "An owner reference names a kind that is not served, or that cannot own the object: the garbage collector keeps the object. Nothing waits, but an owner that is deleted in the foreground and that the object blocks.",
		Look:    "metadata.ownerReferences of the object; kubectl api-resources.",
		Force:   "Nothing: delete the object, or remove the reference to keep the object for good.",
	},
	ContentRemains: {
		Name:    "ContentRemains",
		Meaning: "The namespace, or the custom resource definition, still has objects.",
		Look:    "The objects that are listed.",
		Force:   "The objects stay in etcd without their namespace or definition, and come back when it is created again.",
	},
	APIUnreachable: {
		Name:    "APIUnreachable",
		Meaning: "An aggregated API does not answer: whether it has objects in the namespace is not known.",
		Look:    "kubectl get apiservices; the service and the endpoints of the API.",
		Force:   "Without its APIService, the objects of the API are not deleted.",
	},
	AdmissionUnreachable: {
		Name:    "AdmissionUnreachable",
		Meaning: "An admission webhook that must answer does not: the API server refuses the write that ends the deletion.",
		Look:    "The webhook configuration, its service and the endpoints.",
		Force:   "Without the webhook, whatever it guards is unguarded.",
	},
	AdmissionDenies: {
		Name:    "AdmissionDenies",
		Meaning: "An admission webhook or policy refuses the write that ends the deletion.",
		Look:    "The message of the refusal; the webhook or the policy that it names.",
		Force:   "Whatever the policy guards is unguarded.",
	},
	ConversionFails: {
		Name:    "ConversionFails",
		Meaning: "The conversion webhook of the custom resource definition does not answer: its objects can be neither read nor written.",
		Look:    "spec.conversion of the definition, its service and the endpoints.",
		Force:   "Objects that are stored in another version can be read no more.",
	},
	ObjectInvalid: {
		Name:    "ObjectInvalid",
		Meaning: "The object is not valid under the present schema: every write to it is refused.",
		Look:    "kubectl apply --dry-run=server of the object; the schema of its definition.",
		Force:   "Nothing, if the invalid field is corrected or its validation relaxed.",
	},
	ObjectUnreadable: {
		Name:    "ObjectUnreadable",
		Meaning: "The object cannot be read from storage: its encryption key is missing, or it is damaged.",
		Look:    "The encryption configuration and the log of the API server.",
		Force:   "The object is lost, and whatever it names is known to nobody.",
	},
	Recreated: {
		Name:    "Recreated",
		Meaning: "The object is gone, and exists again with another UID: a controller has created it anew.",
		Look:    "The owner of the new object, such as a StatefulSet or a GitOps application.",
		Force:   "The new object is deleted, and its controller creates it once more.",
	},
}
