package inventory_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

type source = v1.PersistentVolumeSource

func vsphereSource(path, fs string) source {
	return source{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: path, FSType: fs}}
}

func fileSource(share, secret string) source {
	return source{AzureFile: &v1.AzureFilePersistentVolumeSource{ShareName: share, SecretName: secret}}
}

var portworxSource = source{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "px-1"}}

func servedSource(driver, handle string) source {
	return source{CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}}
}

func rbdSource(image string, monitors ...string) source {
	return source{RBD: &v1.RBDPersistentVolumeSource{CephMonitors: monitors, RBDPool: "p", RBDImage: image}}
}

func iscsiSource(lun int32, portal string) source {
	return source{ISCSI: &v1.ISCSIPersistentVolumeSource{TargetPortal: portal, IQN: "iqn.a", Lun: lun}}
}

func fcSource(lun int32, readOnly bool) source {
	return source{FC: &v1.FCVolumeSource{TargetWWNs: []string{"50"}, Lun: ptr.To(lun), ReadOnly: readOnly}}
}

func flexSource(id string) source {
	return source{FlexVolume: &v1.FlexPersistentVolumeSource{Driver: "d", Options: map[string]string{"id": id}}}
}

func TestSharedDiskOfAnySourceIsKept(t *testing.T) { // 05
	for name, tc := range map[string]struct {
		one, other source
		shared     bool
	}{
		"vSphere":                {vsphereSource("[a] k/x.vmdk", "ext4"), vsphereSource("[a] k/x.vmdk", ""), true},
		"vSphere, other paths":   {vsphereSource("[a] k/x.vmdk", ""), vsphereSource("[a] k/y.vmdk", ""), false},
		"Azure file":             {fileSource("s", "one"), fileSource("s", "two"), true},
		"Azure file, CSI":        {fileSource("s", "one"), servedSource("file.csi.azure.com", "group#account#S#disk#uuid#ns"), true},
		"Azure file, CSI, other": {fileSource("s", "one"), servedSource("file.csi.azure.com", "group#account#t#disk#uuid#ns"), false},
		"Portworx, CSI":          {portworxSource, servedSource("pxd.portworx.com", "px-1"), true},
		"EBS, EKS Auto Mode":     {servedSource("ebs.csi.aws.com", "vol-1"), servedSource("ebs.csi.eks.amazonaws.com", "vol-1"), true},
		"in-tree EBS, Auto Mode": {source{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://z/vol-1"}},
			servedSource("ebs.csi.eks.amazonaws.com", "vol-1"), true},
		"Ceph, driver renamed": {servedSource("a.rbd.csi.ceph.com", "0001-h"), servedSource("b.rbd.csi.ceph.com", "0001-h"), true},
		"Ceph, plain driver":   {servedSource("rbd.csi.ceph.com", "0001-h"), servedSource("b.rbd.csi.ceph.com", "0001-h"), true},
		"Ceph, another kind":   {servedSource("a.rbd.csi.ceph.com", "0001-h"), servedSource("a.cephfs.csi.ceph.com", "0001-h"), false},
		"RBD":                  {rbdSource("i", "a", "b"), rbdSource("i", "b"), true},
		"RBD, other images":    {rbdSource("i", "a"), rbdSource("j", "a"), false},
		"iSCSI":                {iscsiSource(1, "a:3260"), iscsiSource(1, "b:3260"), true},
		"iSCSI, other LUNs":    {iscsiSource(1, "a:3260"), iscsiSource(2, "a:3260"), false},
		"FC":                   {fcSource(1, false), fcSource(1, true), true},
		"FC, other LUNs":       {fcSource(1, false), fcSource(2, false), false},
		"flex":                 {flexSource("1"), flexSource("1"), true},
		"flex, other options":  {flexSource("1"), flexSource("2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			one := disk("shop", func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeSource = tc.one })
			other := disk("shop", twin, func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeSource = tc.other })
			here := fill(inventory.Options{}, one, data("shop"), other)
			if got := slices.Contains(itemsOf(here, now), "disk keep HandleShared finalizer"); got != tc.shared {
				t.Errorf("shared %v, want %v: %q", got, tc.shared, itemsOf(here, now))
			}
			names := map[string]bool{}
			for _, handle := range inventory.Handles(other) {
				names[handle] = true
			}
			elsewhere := fill(inventory.Options{Shared: names}, data("shop"))
			if got := elsewhere.Live(one).Kept(); got != tc.shared {
				t.Errorf("with another cluster: kept %v, want %v", got, tc.shared)
			}
		})
	}
}
