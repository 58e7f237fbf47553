package families

// all is the table.
var all = []Family{
	{
		Name:       "external-attacher",
		Finalizers: []string{"external-attacher/*"},
		Kinds:      []string{"PersistentVolume", "VolumeAttachment"},
		Controller: Controller{
			Name: "external-attacher", Images: []string{"csi-attacher"}, Commands: []string{"csi-attacher"},
			Leases: []string{"external-attacher-leader-{driver}"},
		},
		When:   "the volume is detached from all nodes",
		Alive:  "the csi-attacher container beside the driver, and its Lease external-attacher-leader-DRIVER",
		Force:  "the volume may stay attached to its node",
		Source: "https://github.com/kubernetes-csi/external-attacher/blob/master/pkg/controller/util.go",
	},
}
