package intree_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

func TestOneDiskHasOneNameInTermsOfItsPluginHoweverItsVolumeIsWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		inTree v1.PersistentVolumeSource
		// driver and handle are those of a CSI volume of the same disk, attributes what
		// its driver adds.
		driver, handle string
		attributes     map[string]string
	}{
		"a disk of AWS with its zone": {
			v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-1"}}, "ebs.csi.aws.com", "vol-1", nil,
		},
		"a disk of GCE": {
			v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}}, "pd.csi.storage.gke.io", "projects/p/zones/z/disks/disk", nil,
		},
		"a disk of OpenStack": {
			v1.PersistentVolumeSource{Cinder: &v1.CinderPersistentVolumeSource{VolumeID: "id"}}, "cinder.csi.openstack.org", "id", nil,
		},
		"a disk of Azure, in other letters": {
			v1.PersistentVolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DataDiskURI: "/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/disks/d"}},
			"disk.csi.azure.com", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d", nil,
		},
		"a share of Azure": {
			v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{ShareName: "share", SecretName: "some-secret"}}, "file.csi.azure.com", "group#account#share#", nil,
		},
		"a disk of vSphere": {
			v1.PersistentVolumeSource{VsphereVolume: &v1.VsphereVirtualDiskVolumeSource{VolumePath: "[store] path"}}, "csi.vsphere.vmware.com", "id",
			map[string]string{"initialvolumefilepath": "[store] path"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			byHand := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
				CSI: &v1.CSIPersistentVolumeSource{Driver: tc.driver, VolumeHandle: tc.handle, VolumeAttributes: tc.attributes},
			}}}
			translated, err := csitranslation.New().TranslateCSIPVToInTree(byHand)
			if err != nil {
				t.Fatal(err)
			}
			inTree := intree.Disk(&v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: tc.inTree}})
			if got := intree.Disk(translated); got == "" || got != inTree {
				t.Errorf("the disk is %q in the CSI volume, and %q in the in-tree one", got, inTree)
			}
		})
	}
	if disk := intree.Disk(&v1.PersistentVolume{}); disk != "" {
		t.Errorf("a volume of no plugin has the disk %q", disk)
	}
}
