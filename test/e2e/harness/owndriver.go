package harness

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// CreateClass creates a class for the driver, named like the test's namespace.
func (s *Session) CreateClass(change ...func(*storagev1.StorageClass)) {
	s.T.Helper()
	class := NewClass(s.Namespace, s.Driver.DriverName, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	for _, f := range change {
		f(&class)
	}
	s.CreateStorageClass(class)
}

// CreateStorageClass creates a class.
func (s *Session) CreateStorageClass(class storagev1.StorageClass) {
	s.T.Helper()
	_, err := s.Client.StorageV1().StorageClasses().Create(s.Ctx, &class, metav1.CreateOptions{})
	s.Must(err, "create class")
}

// WithOwnDriver starts a driver and a provisioner for the test only, with further flags,
// and returns a session that uses them.
func (s *Session) WithOwnDriver(name, driver, provisioner string) *Session {
	s.T.Helper()
	return s.WithOwnDriverAs("", name, driver, provisioner)
}

// WithOwnDriverAs is WithOwnDriver with a kubeconfig, "" for the default service account.
func (s *Session) WithOwnDriverAs(kubeconfig, name, driver, provisioner string) *Session {
	s.T.Helper()
	own := *s.Cluster
	own.Dir = s.T.TempDir()
	var err error
	own.Driver, err = sandbox.StartDriver(s.Ctx, sandbox.DriverConfig{Binaries: Binaries(), Dir: own.Dir, Name: name,
		Args: strings.Fields(driver)})
	s.Must(err, "start driver")
	s.T.Cleanup(func() { s.StopProcess(own.Driver) })
	own.Provisioner, err = s.Plane.StartProvisioner(s.Ctx, own.Driver,
		sandbox.Controller{Name: name, Kubeconfig: kubeconfig, HonorReclaimPolicy: true, Args: strings.Fields(provisioner)})
	s.Must(err, "start provisioner")
	s.T.Cleanup(func() { s.StopProcess(own.Provisioner) })
	return &Session{Cluster: &own, T: s.T, Ctx: s.Ctx, Namespace: s.Namespace}
}

// StopProcess stops a process of the test, which must not have ended before.
func (s *Session) StopProcess(process interface{ Stop(context.Context) error }) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	if err := process.Stop(ctx); err != nil {
		s.T.Errorf("stop process: %v", err)
	}
}
