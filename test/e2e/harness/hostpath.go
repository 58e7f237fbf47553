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

// Directory creates a directory with a file in the root of the host-path plugin. The
// test removes it at the end.
func (s *Session) Directory() string {
	s.T.Helper()
	dir, err := os.MkdirTemp(intree.HostPathRoot, "exeunt-volume-")
	s.Must(err, "make directory")
	s.T.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.Must(os.WriteFile(filepath.Join(dir, "data"), []byte("x"), 0o600), "write data")
	return dir
}

// HostPath makes a volume a host-path volume of the path.
func HostPath(path string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}}
	}
}

// ProvisionedBy annotates a volume as provisioned by the plugin.
func ProvisionedBy(plugin string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		metav1.SetMetaDataAnnotation(&v.ObjectMeta, storage.AnnDynamicallyProvisioned, plugin)
	}
}

// ExpectData fails the test unless the directory exists as wanted.
func (s *Session) ExpectData(path string, wanted bool) {
	s.T.Helper()
	_, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		s.T.Fatal(err)
	case wanted != (err == nil):
		s.T.Errorf("%s exists: %v, want %v", path, err == nil, wanted)
	}
}
