package disk_test

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/disk"
)

const driver = "disk.example.com"

// translator is an in-tree plugin with GCE's source. The handle of a translated volume
// differs from the handle that the driver returned, as with GCE and vSphere.
type translator struct{}

func (translator) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Spec.GCEPersistentDisk == nil {
		return nil, errors.New("no migrated plugin")
	}
	return csi(driver, "unspecified/"+volume.Spec.GCEPersistentDisk.PDName), nil
}

func (translator) Disk(volume *v1.PersistentVolume) string {
	if volume.Spec.CSI != nil {
		return volume.Spec.CSI.VolumeHandle[strings.LastIndex(volume.Spec.CSI.VolumeHandle, "/")+1:]
	}
	return disk.PluginName(volume)
}

func csi(driver, handle string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
	return volume
}

func inTree(name string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.GCEPersistentDisk = &v1.GCEPersistentDiskVolumeSource{PDName: name}
	return volume
}

func TestHandleIsThatOfTheDriver(t *testing.T) {
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		want   string
		fails  string
	}{
		"CSI source":                 {csi(driver, "h"), "h", ""},
		"in-tree source":             {inTree("d"), "unspecified/d", ""},
		"CSI source, another driver": {csi("other", "h"), "", "handle of driver other"},
		"CSI source without handle":  {csi(driver, ""), "", "no volume handle"},
		"unknown source":             {&v1.PersistentVolume{}, "", "no migrated plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			disks := disk.Driver{Name: driver, Translator: translator{}}
			got, err := disks.Handle(tc.volume)
			if got != tc.want || (err != nil) != (tc.fails != "") {
				t.Errorf("Handle = %q, %v, want %q", got, err, tc.want)
			}
			if err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("Handle fails with %q, want %q in the message", err, tc.fails)
			}
			if again := disks.HandleOf(tc.volume); again != tc.want {
				t.Errorf("HandleOf = %q, want %q", again, tc.want)
			}
		})
	}
}

func TestSameDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b *v1.PersistentVolume
		same bool
	}{
		"CSI, equal handles":               {csi(driver, "zone/d"), csi(driver, "zone/d"), true},
		"CSI, plugin names are not used":   {csi(driver, "zone/d"), csi(driver, "other/d"), false},
		"CSI, equal handles, other driver": {csi(driver, "zone/d"), csi("other", "zone/d"), false},
		"CSI, both of another driver":      {csi("other", "zone/d"), csi("other", "zone/d"), false},
		"CSI, no handles":                  {csi(driver, ""), csi(driver, ""), false},
		"CSI and in-tree, one plugin name": {csi(driver, "zone/d"), inTree("d"), true},
		"CSI and in-tree, two names":       {csi(driver, "zone/d"), inTree("e"), false},
		"CSI and in-tree, equal handles":   {csi(driver, "unspecified/d"), inTree("d"), true},
		"in-tree, equal":                   {inTree("d"), inTree("d"), true},
		"in-tree, different":               {inTree("d"), inTree("e"), false},
		"unknown sources":                  {&v1.PersistentVolume{}, &v1.PersistentVolume{}, false},
		"CSI and unknown source":           {csi(driver, "zone/d"), &v1.PersistentVolume{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			disks := disk.Driver{Name: driver, Translator: translator{}}
			if got := disks.Same(tc.a, tc.b); got != tc.same {
				t.Errorf("Same = %v, want %v", got, tc.same)
			}
			if got := disks.Same(tc.b, tc.a); got != tc.same {
				t.Errorf("Same with the volumes swapped = %v, want %v", got, tc.same)
			}
		})
	}
}
