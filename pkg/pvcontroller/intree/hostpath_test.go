package intree_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

// at returns a volume whose data is at the path.
func at(path string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	volume.Spec.HostPath = &v1.HostPathVolumeSource{Path: path}
	return volume
}

// request asks for a volume of 1Mi; change may alter it.
func request(change ...func(*intree.Request)) intree.Request {
	r := intree.Request{VolumeName: "pvc-1", Claim: &v1.PersistentVolumeClaim{}, Class: &storagev1.StorageClass{}}
	r.Class.Name = "local"
	r.Claim.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}
	for _, f := range change {
		f(&r)
	}
	return r
}

func TestHostPathVolumeIsProvisionedAndDeleted(t *testing.T) {
	plugin := &intree.HostPath{Root: t.TempDir(), Provisions: true}
	volume, err := plugin.Describe(request())
	if err != nil {
		t.Fatal(err)
	}
	other, err := plugin.Describe(request(func(r *intree.Request) { r.VolumeName = "pvc-2" }))
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(plugin.Root); err != nil || len(left) > 0 {
		t.Errorf("describing volumes left %v (%v)", left, err)
	}
	for _, volume := range []*v1.PersistentVolume{volume, other, volume} { // after a crash, once more
		if err := plugin.Create(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
	}
	path := volume.Spec.HostPath.Path
	switch {
	case other.Spec.HostPath.Path == path:
		t.Errorf("two volumes share the directory %s", path)
	case !strings.HasPrefix(path, plugin.Root+"/hostpath_pv/"):
		t.Errorf("the volume is at %s, want it below %s/hostpath_pv", path, plugin.Root)
	case volume.Name != "pvc-1" || volume.Spec.PersistentVolumeReclaimPolicy != v1.PersistentVolumeReclaimDelete ||
		len(volume.Spec.AccessModes) != 1:
		t.Errorf("provisioned %+v", volume)
	}
	if err := os.WriteFile(filepath.Join(path, "data"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // deleting what is gone is a success
		if err := plugin.Delete(t.Context(), volume); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if _, err := os.Stat(other.Spec.HostPath.Path); err != nil {
		t.Errorf("the other volume is gone: %v", err)
	}
}

func TestHostPathRefusesUnsupportedRequests(t *testing.T) {
	block, retain := v1.PersistentVolumeBlock, v1.PersistentVolumeReclaimRetain
	plugin := &intree.HostPath{Root: t.TempDir(), Provisions: true}
	for name, change := range map[string]func(*intree.Request){
		"block volumes":         func(r *intree.Request) { r.Claim.Spec.VolumeMode = &block },
		"mount options":         func(r *intree.Request) { r.Class.MountOptions = []string{"ro"} },
		"data source":           func(r *intree.Request) { r.Claim.Spec.DataSource = &v1.TypedLocalObjectReference{} },
		"data source reference": func(r *intree.Request) { r.Claim.Spec.DataSourceRef = &v1.TypedObjectReference{} },
	} {
		t.Run(name, func(t *testing.T) {
			if volume, err := plugin.Describe(request(change)); err == nil {
				t.Errorf("provisioned %+v", volume)
			}
		})
	}
	if left, err := os.ReadDir(plugin.Root); err != nil || len(left) > 0 {
		t.Errorf("a refused request left %v (%v)", left, err)
	}
	if _, err := (&intree.HostPath{Root: plugin.Root}).Describe(request()); !errors.Is(err, intree.ErrDisabled) {
		t.Errorf("Describe = %v, want %v unless a flag allows it", err, intree.ErrDisabled)
	}
	volume, err := plugin.Describe(request(func(r *intree.Request) { r.Class.ReclaimPolicy = &retain }))
	if err != nil || volume.Spec.PersistentVolumeReclaimPolicy != retain {
		t.Errorf("the class's policy is not the volume's: %+v (%v)", volume, err)
	}
}

// newRoot returns a root with data and links, and a directory with data outside the root.
func newRoot(t *testing.T) (root, outside string) {
	t.Helper()
	root, outside = t.TempDir(), t.TempDir()
	for _, file := range []string{outside + "/kept/file", root + "/volume/file", root + "/hostpath_pv/other/file"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": outside, "within": "volume"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root, outside
}

func TestHostPathDeletesOnlyBelowItsRoot(t *testing.T) {
	root, outside := newRoot(t)
	plugin := &intree.HostPath{Root: root, Provisions: true}
	for name, path := range map[string]string{
		"root":                             root,
		"root with slash":                  root + "/",
		"root with dot":                    root + "/.",
		"directory of provisioned volumes": root + "/hostpath_pv",
		"outside the root":                 outside + "/kept",
		"name with the root as prefix":     root + "-more/volume",
		"dots out of the root":             root + "/../" + filepath.Base(outside) + "/kept",
		"dots within the root":             root + "/volume/../hostpath_pv/other",
		"double slash":                     root + "//volume",
		"empty":                            "",
		"relative":                         "volume",
		"file system":                      "/",
		"link out of the root":             root + "/link",
		"below a link out of the root":     root + "/link/kept",
		"link within the root":             root + "/within",
		"below a link within the root":     root + "/within/file",
	} {
		t.Run(name, func(t *testing.T) {
			if err := plugin.Delete(t.Context(), at(path)); err == nil {
				t.Errorf("deleted %q", path)
			}
		})
	}
	if err := plugin.Delete(t.Context(), &v1.PersistentVolume{}); err == nil {
		t.Error("deleted a volume without a path")
	}
	for _, file := range []string{outside + "/kept/file", root + "/volume/file", root + "/hostpath_pv/other/file"} {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("data is lost: %v", err)
		}
	}
}

func TestHostPathSaysWhichVolumesItNeverDeletes(t *testing.T) {
	set := intree.NewSet(migrations{}, &intree.HostPath{Root: "/tmp"}, &intree.NFS{})
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		want   bool
	}{
		"below the root":         {at("/tmp/a/b"), false},
		"outside the root":       {at("/var/a"), true},
		"root":                   {at("/tmp"), true},
		"other source":           {by(intree.HostPathName, export("server", "/a")), true},
		"volume without deleter": {export("server", "/a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := set.Refuses(tc.volume); got != tc.want {
				t.Errorf("Refuses = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestHostPathDeletesLinkWithoutTarget(t *testing.T) {
	root, outside := newRoot(t)
	plugin := &intree.HostPath{Root: root, Provisions: true}
	if err := os.Symlink(outside, filepath.Join(root, "volume", "link")); err != nil {
		t.Fatal(err)
	}
	if err := plugin.Delete(t.Context(), at(root+"/volume/")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside + "/kept/file"); err != nil {
		t.Errorf("deleting a link deleted its target: %v", err)
	}
	if _, err := os.Stat(root + "/volume"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the volume is still there: %v", err)
	}
}

func FuzzHostPathNeverDeletesOutsideOfItsRoot(f *testing.F) {
	parent := f.TempDir()
	root, outside := filepath.Join(parent, "root"), filepath.Join(parent, "outside")
	kept := []string{filepath.Join(outside, "file"), filepath.Join(root, "hostpath_pv", "file")}
	for _, file := range kept {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x"), 0o600)); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		f.Fatal(err)
	}
	for _, path := range []string{"/volume", "/../outside", "/link/file", "/link", "", "/", "/.", "//",
		"/volume/../../outside/file", "/hostpath_pv", "/hostpath_pv/", "/\x00", "/hostpath_pv/."} {
		f.Add(path)
	}
	plugin := &intree.HostPath{Root: root}
	f.Fuzz(func(t *testing.T, path string) {
		if path == "/hostpath_pv/file" || path == "/hostpath_pv/file/" {
			return // a volume of the plugin's own
		}
		for _, whole := range []string{root + path, outside + path, parent + path, path} {
			_ = plugin.Delete(t.Context(), at(whole))
		}
		for _, file := range kept {
			if _, err := os.Stat(file); err != nil {
				t.Fatalf("%q: data is lost: %v", path, err)
			}
		}
	})
}
