package disk_test

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	. "github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// fuzzTranslator translates volumes of GCE disks only.
type fuzzTranslator struct{}

func (fuzzTranslator) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	if volume.Spec.GCEPersistentDisk == nil {
		return nil, errors.New("not an in-tree volume")
	}
	volume = volume.DeepCopy()
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: fuzzobj.Driver,
		VolumeHandle: volume.Spec.GCEPersistentDisk.PDName}
	return volume, nil
}

func (fuzzTranslator) Disk(volume *v1.PersistentVolume) string { return PluginName(volume) }

// Two volumes are one disk in both orders, a volume with a handle is its own disk, and
// volumes of one handle are one disk.
func FuzzSameDisk(f *testing.F) {
	fuzzobj.AddSeeds(f, 40, 60)
	driver := Driver{Name: fuzzobj.Driver, Translator: fuzzTranslator{}}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := fuzzobj.New(data)
		a, b := d.Volume("v0"), d.Volume(fuzzobj.Pick(d, "v1", "v0"))
		beforeA, beforeB := a.DeepCopy(), b.DeepCopy()
		if driver.Same(a, b) != driver.Same(b, a) {
			t.Errorf("Same differs by order:\n%v\n%v", a.Spec, b.Spec)
		}
		handle, err := driver.Handle(a)
		if (err == nil) != (handle != "") || (driver.HandleOf(a) != handle) {
			t.Errorf("Handle = %q, %v, HandleOf = %q", handle, err, driver.HandleOf(a))
		}
		if handle != "" && !driver.Same(a, a) {
			t.Errorf("volume of handle %q is not its own disk", handle)
		}
		if handle != "" && handle == driver.HandleOf(b) && !driver.Same(a, b) {
			t.Errorf("two volumes of handle %q are two disks", handle)
		}
		unknown, here := OnSeparateNodes("", a, b), OnSeparateNodes("n0", a, b)
		if diff := cmp.Diff(beforeA, a) + cmp.Diff(beforeB, b); diff != "" {
			t.Errorf("changed the volumes:\n%s", diff)
		}
		if unknown && !here {
			t.Error("the volumes are separate from an unknown node, and not from a known one")
		}
		a.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRecycle
		b.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRecycle
		if one := OnSeparateNodes("", a, b); one != OnSeparateNodes("", b, a) {
			t.Error("OnSeparateNodes of recycled volumes differs by order")
		}
	})
}

// A directory and all its parent directories have one key each, and a key of a subdirectory
// ends with a key of its parent.
func FuzzEnclosing(f *testing.F) {
	f.Add("/a/b/c", "d")
	f.Add("server/export", "x")
	f.Add("/", "")
	f.Add("", "..")
	f.Add("../..", ".")
	f.Fuzz(func(t *testing.T, directory, below string) {
		directory = path.Clean(directory)
		keys := Enclosing("plugin", directory)
		if keys[0] != Directory("plugin", directory) || len(keys) > strings.Count(directory, "/")+2 {
			t.Errorf("keys of %q are %q", directory, keys)
		}
		if sorted := slices.Sorted(slices.Values(keys)); len(slices.Compact(sorted)) != len(keys) {
			t.Errorf("keys of %q repeat: %q", directory, keys)
		}
		if below == "" || strings.Contains(below, "/") || below == "." || below == ".." || directory == "." {
			return
		}
		if child := Enclosing("plugin", path.Join(directory, below)); !slices.Equal(child[1:], keys) {
			t.Errorf("keys of %q below %q are %q, want the last ones to be %q", below, directory, child, keys)
		}
	})
}
