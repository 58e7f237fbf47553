package disk_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/migration"
)

var sourceCases = map[string]struct {
	inTree v1.PersistentVolumeSource
	// driver, handle and attributes describe a CSI volume of the same disk.
	driver, handle string
	attributes     map[string]string
}{
	"AWS, with zone": {
		v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-1"}}, "ebs.csi.aws.com", "vol-1", nil,
	},
	"GCE": {
		v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}},
		"pd.csi.storage.gke.io", "projects/p/zones/z/disks/disk", nil,
	},
	"OpenStack Cinder": {
		v1.PersistentVolumeSource{Cinder: &v1.CinderPersistentVolumeSource{VolumeID: "id"}}, "cinder.csi.openstack.org", "id",
		nil,
	},
	"Azure disk, other capitals": {
		v1.PersistentVolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DataDiskURI: "/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/disks/d"}},
		"disk.csi.azure.com", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d", nil,
	},
	"Azure file": {
		v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{ShareName: "share",
			SecretName: "some-secret"}}, "file.csi.azure.com", "group#account#share#", nil,
	},
	"vSphere": {
		v1.PersistentVolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "[store] path"}},
		"csi.vsphere.vmware.com", "id",
		map[string]string{"initialvolumefilepath": "[store] path"},
	},
}

func TestDiskHasOnePluginNameInBothSources(t *testing.T) {
	for name, tc := range sourceCases {
		t.Run(name, func(t *testing.T) {
			volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
				CSI: &v1.CSIPersistentVolumeSource{Driver: tc.driver, VolumeHandle: tc.handle, VolumeAttributes: tc.attributes},
			}}}
			translated, err := migration.New().For(tc.driver).InTree(volume)
			if err != nil {
				t.Fatal(err)
			}
			inTree := disk.PluginName(&v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: tc.inTree}})
			if got := disk.PluginName(translated); got == "" || got != inTree {
				t.Errorf("plugin name of the CSI volume: %q, of the in-tree volume: %q", got, inTree)
			}
		})
	}
	if disk := disk.PluginName(&v1.PersistentVolume{}); disk != "" {
		t.Errorf("a volume without source has plugin name %q", disk)
	}
}

func TestPluginNameOfPortworxVolume(t *testing.T) {
	source := v1.PersistentVolumeSource{PortworxVolume: &v1.PortworxVolumeSource{VolumeID: "px-1"}}
	if got := disk.PluginName(&v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: source}}); got != "px-1" {
		t.Errorf("PluginName = %q, want px-1", got)
	}
}
