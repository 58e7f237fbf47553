package migration_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/migration"
)

const (
	gcePlugin = "kubernetes.io/gce-pd"
	gceDriver = "pd.csi.storage.gke.io"
)

func gceDisk(name string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.GCEPersistentDisk = &v1.GCEPersistentDiskVolumeSource{PDName: name}
	volume.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	return volume
}

func csiVolume(driver, handle string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
	return volume
}

func hostPath() *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.HostPath = &v1.HostPathVolumeSource{Path: "/tmp/a"}
	return volume
}

func TestMigratedPluginHasOneDriver(t *testing.T) {
	library := migration.New()
	if driver, migrated := library.Driver(gcePlugin); !migrated || driver != gceDriver {
		t.Errorf("Driver = %q, %v", driver, migrated)
	}
	if plugin, replaced := library.Plugin(gceDriver); !replaced || plugin != gcePlugin {
		t.Errorf("Plugin = %q, %v", plugin, replaced)
	}
	if !library.IsMigratedDriver(gceDriver) {
		t.Error("the driver replaced no plugin")
	}
	if plugin := library.PluginOf(gceDisk("disk")); plugin != gcePlugin {
		t.Errorf("PluginOf = %q", plugin)
	}
}

func TestOtherPluginsAndDriversAreNotMigrated(t *testing.T) {
	library := migration.New()
	if _, migrated := library.Driver("kubernetes.io/host-path"); migrated {
		t.Error("the host-path plugin is migrated")
	}
	if plugin, replaced := library.Plugin("example.com"); replaced || library.IsMigratedDriver("example.com") {
		t.Errorf("driver example.com replaced plugin %q", plugin)
	}
	if plugin := library.PluginOf(hostPath()); plugin != "" {
		t.Errorf("PluginOf = %q, want none", plugin)
	}
}

func TestClassIsTranslated(t *testing.T) {
	class := &storagev1.StorageClass{Provisioner: gcePlugin, Parameters: map[string]string{"fstype": "xfs"}}
	translated, err := migration.New().For(gceDriver).Class(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	if got := translated.Parameters["csi.storage.k8s.io/fstype"]; got != "xfs" {
		t.Errorf("parameters: %v", translated.Parameters)
	}
}

func TestVolumeIsTranslatedToCSI(t *testing.T) {
	translator := migration.New().For(gceDriver)
	own := csiVolume(gceDriver, "projects/p/zones/z/disks/d")
	if same, err := translator.Volume(own); err != nil || same != own {
		t.Errorf("a CSI volume became %v, %v", same, err)
	}
	if translated, err := translator.Volume(gceDisk("d")); err != nil || translated.Spec.CSI == nil ||
		translated.Spec.CSI.Driver != gceDriver {
		t.Errorf("the in-tree volume became %v, %v", translated, err)
	}
	if translated, err := translator.Volume(hostPath()); err == nil {
		t.Errorf("a host path became %v", translated)
	}
}

func TestDiskHasThePluginsName(t *testing.T) {
	for name, tc := range map[string]struct {
		driver string
		volume *v1.PersistentVolume
		want   string
	}{
		"in-tree source":                 {gceDriver, gceDisk("d"), "d"},
		"CSI source":                     {gceDriver, csiVolume(gceDriver, "projects/p/zones/z/disks/d"), "d"},
		"CSI source with another form":   {gceDriver, csiVolume(gceDriver, "d"), ""},
		"CSI source of another driver":   {gceDriver, csiVolume("example.com", "d"), ""},
		"driver that replaced no plugin": {"example.com", gceDisk("d"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := migration.New().For(tc.driver).Disk(tc.volume); got != tc.want {
				t.Errorf("Disk = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestInlineVolumeIsTranslatedToCSI(t *testing.T) {
	disk := &v1.Volume{Name: "data",
		VolumeSource: v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "d"}}}
	translated, err := migration.New().Inline(disk, "default")
	if err != nil || translated == nil || translated.Spec.CSI == nil || translated.Spec.CSI.Driver != gceDriver {
		t.Errorf("the inline volume became %v, %v", translated, err)
	}
	empty := &v1.Volume{Name: "tmp", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
	if translated, err := migration.New().Inline(empty, "default"); err != nil || translated != nil {
		t.Errorf("an empty directory became %v, %v", translated, err)
	}
}
