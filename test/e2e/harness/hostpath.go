package harness

import (
	"errors"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Directory makes a directory with a file below the one that host-path volumes may
// be deleted from; it is removed after the test.
func (s *Session) Directory() string {
	s.T.Helper()
	dir, err := os.MkdirTemp(intree.HostPathRoot, "exeunt-volume-")
	s.Must(err, "make directory")
	s.T.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.Must(os.WriteFile(filepath.Join(dir, "data"), []byte("x"), 0o600), "write data")
	return dir
}

// HostPath makes a volume a host-path one at the path.
func HostPath(path string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}}
	}
}

// ProvisionedBy lets a volume look as if the plugin had made it.
func ProvisionedBy(plugin string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		metav1.SetMetaDataAnnotation(&v.ObjectMeta, storage.AnnDynamicallyProvisioned, plugin)
	}
}

// ExpectData checks whether the data of a host-path volume is still there.
func (s *Session) ExpectData(path string, wanted bool) {
	s.T.Helper()
	_, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		s.T.Fatal(err)
	case wanted != (err == nil):
		s.T.Errorf("the data in %s is there: %v, want %v", path, err == nil, wanted)
	}
}
