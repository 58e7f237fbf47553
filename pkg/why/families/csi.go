package families

// csi are finalizers of the CSI sidecars and of the snapshot controller.
var csi = []Family{
	{
		Name: "external-provisioner", Finalizers: []string{"external-provisioner.volume.kubernetes.io/finalizer"},
		Kinds:      []string{"PersistentVolume"},
		Controller: externalProvisioner, Alternatives: []Controller{provisioner},
		When:   "the CSI driver has deleted the volume, or the reclaim policy keeps the volume",
		Alive:  besideDriver("csi-provisioner", "DRIVER"),
		Force:  "the disk stays in storage and is paid for, and nobody knows of it any more",
		Source: "https://github.com/kubernetes-sigs/sig-storage-lib-external-provisioner/blob/master/controller/controller.go",
	},
	{
		Name: "external-provisioner", Finalizers: []string{"provisioner.storage.kubernetes.io/cloning-protection"},
		Kinds:      []string{"PersistentVolumeClaim"},
		Controller: externalProvisioner, Alternatives: []Controller{provisioner},
		When:   "no claim that is cloned from this claim waits for its volume",
		Alive:  besideDriver("csi-provisioner", "DRIVER"),
		Force:  "the clone fails or is incomplete",
		Source: "https://github.com/kubernetes-csi/external-provisioner/blob/master/pkg/controller/controller.go",
	},
	{
		Name:       "external-provisioner",
		Finalizers: []string{"provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection"},
		Kinds:      []string{"VolumeSnapshot"},
		Controller: externalProvisioner, Alternatives: []Controller{provisioner},
		When:   "no claim waits for a volume from the snapshot",
		Alive:  besideDriver("csi-provisioner", "DRIVER"),
		Force:  "the restored volume fails or is incomplete",
		Source: "https://github.com/kubernetes-csi/external-provisioner/blob/master/pkg/controller/controller.go",
	},
	{
		Name: "external-attacher", Finalizers: []string{"external-attacher/*"},
		Kinds: []string{"PersistentVolume", "VolumeAttachment"},
		Controller: Controller{
			Name: "external-attacher", Images: []string{"csi-attacher", "external-attacher", "csi-external-attacher",
				"ose-csi-external-attacher"}, Commands: []string{"csi-attacher"},
			Leases: []string{"external-attacher-leader-{driver}"}, ElectsByFlag: true,
		},
		When:   "the volume is detached from its node, or from all nodes",
		Alive:  besideDriver("csi-attacher", "external-attacher-leader-DRIVER"),
		Force:  "the disk stays attached to its node; attached to another node as well, its data is damaged",
		Source: "https://github.com/kubernetes-csi/external-attacher/blob/master/pkg/controller/util.go",
	},
	{
		Name:       "external-snapshotter",
		Finalizers: []string{"snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"},
		Kinds:      []string{"VolumeSnapshotContent"},
		Controller: snapshotter,
		When:       "the VolumeSnapshot is gone, and the CSI driver has deleted the snapshot, or the deletion policy keeps the snapshot",
		Alive:      besideDriver("csi-snapshotter", "external-snapshotter-leader-DRIVER"),
		Force:      "the snapshot stays in storage and is paid for, and nobody knows of it any more",
		Source:     snapshotSource,
	},
	{
		Name: "external-snapshotter", Finalizers: []string{"snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"},
		Kinds:      []string{"VolumeSnapshot"},
		Controller: snapshotController,
		When:       "the VolumeSnapshotContent is gone, or its deletion policy keeps the snapshot",
		Alive:      snapshotControllerAlive,
		Force:      "the content and the snapshot in storage stay behind, without the VolumeSnapshot that names them",
		Source:     snapshotSource,
	},
	{
		Name:       "external-snapshotter",
		Finalizers: []string{"snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"},
		Kinds:      []string{"VolumeSnapshot"},
		Controller: snapshotController,
		When:       "no claim waits for a volume from the snapshot",
		Alive:      snapshotControllerAlive,
		Force:      "the restored volume fails or is incomplete",
		Source:     snapshotSource,
	},
	{
		Name:       "external-snapshotter",
		Finalizers: []string{"snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection"},
		Kinds:      []string{"VolumeSnapshot"},
		Controller: snapshotController,
		When:       "the VolumeGroupSnapshot of the snapshot is deleted",
		Alive:      snapshotControllerAlive,
		Force:      "the group can no longer be restored as a whole",
		Source:     snapshotSource,
	},
	{
		Name: "external-snapshotter", Finalizers: []string{"snapshot.storage.kubernetes.io/pvc-as-source-protection"},
		Kinds:      []string{"PersistentVolumeClaim"},
		Controller: snapshotController,
		When:       "every snapshot that is being taken from the claim is ready, failed or gone",
		Alive:      snapshotControllerAlive,
		Force:      "the snapshot fails or is incomplete",
		Source:     snapshotSource,
	},
	{
		Name:       "external-snapshotter",
		Finalizers: []string{"groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-bound-protection"},
		Kinds:      []string{"VolumeGroupSnapshot"},
		Controller: snapshotController,
		When:       "the VolumeGroupSnapshotContent is gone, or its deletion policy keeps the snapshots",
		Alive:      snapshotControllerAlive,
		Force:      "the content and the snapshots in storage stay behind, without the VolumeGroupSnapshot that names them",
		Source:     snapshotSource,
	},
	{
		Name:       "external-snapshotter",
		Finalizers: []string{"groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection"},
		Kinds:      []string{"VolumeGroupSnapshotContent"},
		Controller: snapshotter,
		When:       "the VolumeGroupSnapshot is gone, and the CSI driver has deleted the snapshots, or the deletion policy keeps them",
		Alive:      besideDriver("csi-snapshotter", "external-snapshotter-leader-DRIVER"),
		Force:      "the snapshots stay in storage and are paid for, and nobody knows of them any more",
		Source:     snapshotSource,
	},
	{
		Name: "volume populators", Finalizers: []string{"*/populate-target-protection"},
		Kinds:      []string{"PersistentVolumeClaim"},
		Controller: Controller{Name: "the volume populator of the claim's dataSourceRef"},
		When:       "the populator has filled the volume of the claim, or has removed its own claim and pod",
		Alive:      "the program of the populator, which the prefix of the finalizer names",
		Force:      "the claim and the pod that fill the volume stay behind in the populator's namespace",
		Source:     "https://github.com/kubernetes-csi/lib-volume-populator/blob/master/populator-machinery/controller.go",
	},
	{
		Name: "CSI-Addons", Finalizers: []string{"replication.storage.openshift.io", "replication.storage.openshift.io/*"},
		Controller: Controller{Name: "csi-addons-controller-manager", Images: []string{"csiaddons/k8s-controller"}},
		When:       "the storage system has ended the replication of the volume",
		Alive:      "the Deployment csi-addons-controller-manager",
		Force:      "the storage system goes on replicating the volume, or refuses to delete it",
		Source:     "https://github.com/csi-addons/kubernetes-csi-addons/blob/main/internal/controller/replication.storage/finalizers.go",
	},
}

const (
	snapshotSource          = "https://github.com/kubernetes-csi/external-snapshotter/blob/master/pkg/utils/util.go"
	snapshotControllerAlive = "the Deployment snapshot-controller and its Lease snapshot-controller-leader; on some managed clusters it runs outside"
)

// besideDriver says where a sidecar is seen.
func besideDriver(container, lease string) string {
	return "the container " + container + " beside the driver, and its Lease " + lease
}

var externalProvisioner = Controller{
	Name: "external-provisioner", Images: []string{"csi-provisioner", "external-provisioner", "csi-external-provisioner",
		"ose-csi-external-provisioner"}, Commands: []string{"csi-provisioner"},
	Leases: []string{"{driver}"}, EventSources: []string{"{driver}_*"}, ErrorReasons: []string{"VolumeFailedDelete"},
	ElectsByFlag: true,
}

// provisioner serves in place of csi-provisioner, with the same Lease.
var provisioner = Controller{
	Name: "the provisioner of Exeunt", Images: []string{"exeunt/provisioner"}, Commands: []string{"provisioner"},
	Leases: []string{"{driver}"}, EventSources: []string{"{driver}_*"}, ErrorReasons: []string{"VolumeFailedDelete"},
	ElectsByFlag: true,
}

var snapshotter = Controller{
	Name: "csi-snapshotter", Images: []string{"csi-snapshotter", "csi-external-snapshotter",
		"ose-csi-external-snapshotter"}, Commands: []string{"csi-snapshotter"},
	Leases: []string{"external-snapshotter-leader-{driver}"}, EventSources: []string{"csi-snapshotter {driver}"},
	ErrorReasons: []string{"SnapshotDeleteError"}, ElectsByFlag: true,
}

var snapshotController = Controller{
	Name: "snapshot-controller", Images: []string{"snapshot-controller", "csi-snapshot-controller",
		"ose-csi-snapshot-controller"}, Commands: []string{"snapshot-controller"},
	Leases: []string{"snapshot-controller-leader"}, Namespaces: []string{"kube-system"},
	Needs:        []string{"volumesnapshots.snapshot.storage.k8s.io"},
	EventSources: []string{"snapshot-controller"},
	ErrorReasons: []string{"SnapshotContentObjectDeleteError"}, ElectsByFlag: true,
}
