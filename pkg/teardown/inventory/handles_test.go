package inventory_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

func TestSharedDiskOfAnySourceIsKept(t *testing.T) { // 05
	type source = v1.PersistentVolumeSource
	vsphere := func(path, fs string) source {
		return source{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: path, FSType: fs}}
	}
	file := func(share, secret string) source {
		return source{AzureFile: &v1.AzureFilePersistentVolumeSource{ShareName: share, SecretName: secret}}
	}
	portworx := source{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "px-1"}}
	served := func(driver, handle string) source {
		return source{CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}}
	}
	rbd := func(image string, monitors ...string) source {
		return source{RBD: &v1.RBDPersistentVolumeSource{CephMonitors: monitors, RBDPool: "p", RBDImage: image}}
	}
	iscsi := func(lun int32, portal string) source {
		return source{ISCSI: &v1.ISCSIPersistentVolumeSource{TargetPortal: portal, IQN: "iqn.a", Lun: lun}}
	}
	fc := func(lun int32, readOnly bool) source {
		return source{FC: &v1.FCVolumeSource{TargetWWNs: []string{"50"}, Lun: ptr.To(lun), ReadOnly: readOnly}}
	}
	flex := func(id string) source {
		return source{FlexVolume: &v1.FlexPersistentVolumeSource{Driver: "d", Options: map[string]string{"id": id}}}
	}
	for name, tc := range map[string]struct {
		one, other source
		shared     bool
	}{
		"vSphere":                {vsphere("[a] k/x.vmdk", "ext4"), vsphere("[a] k/x.vmdk", ""), true},
		"vSphere, other paths":   {vsphere("[a] k/x.vmdk", ""), vsphere("[a] k/y.vmdk", ""), false},
		"Azure file":             {file("s", "one"), file("s", "two"), true},
		"Azure file, CSI":        {file("s", "one"), served("file.csi.azure.com", "group#account#S#disk#uuid#ns"), true},
		"Azure file, CSI, other": {file("s", "one"), served("file.csi.azure.com", "group#account#t#disk#uuid#ns"), false},
		"Portworx, CSI":          {portworx, served("pxd.portworx.com", "px-1"), true},
		"RBD":                    {rbd("i", "a", "b"), rbd("i", "b"), true},
		"RBD, other images":      {rbd("i", "a"), rbd("j", "a"), false},
		"iSCSI":                  {iscsi(1, "a:3260"), iscsi(1, "b:3260"), true},
		"iSCSI, other LUNs":      {iscsi(1, "a:3260"), iscsi(2, "a:3260"), false},
		"FC":                     {fc(1, false), fc(1, true), true},
		"FC, other LUNs":         {fc(1, false), fc(2, false), false},
		"flex":                   {flex("1"), flex("1"), true},
		"flex, other options":    {flex("1"), flex("2"), false},
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
