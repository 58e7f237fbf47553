package differential

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
)

// side is a cluster with our loops or upstream's. The provisioner is ours on all sides,
// because only the loops are compared.
type side struct {
	name string
	// honor is the gate HonorPVReclaimPolicy of our programs.
	honor bool
	// upstream runs upstream's loops instead of ours.
	upstream bool

	dir      string
	port     int // of the metrics of the loops
	cluster  *sandbox.Cluster
	plane    *sandbox.ControlPlane
	driver   *sandbox.Driver
	client   dynamic.Interface
	recorder *recorder
}

// start starts the side. On error it stops the started processes.
func (s *side) start() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.dir, err = os.MkdirTemp("", "exeunt-differential-"); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop(), os.RemoveAll(s.dir))
		}
	}()
	s.cluster, err = sandbox.StartCluster(ctx, sandbox.ClusterConfig{
		Config:    sandbox.Config{Binaries: harness.Binaries(), Dir: s.dir},
		Manifests: []fs.FS{deploy.Manifests, deploy.Recycler, rbac.Manifests, os.DirFS(filepath.Join("testdata", "shared"))},
	})
	if err != nil {
		return err
	}
	s.plane = s.cluster.Plane
	if err = harness.CheckVersion(s.plane); err != nil {
		return err
	}
	if s.driver, err = s.cluster.StartDriver(ctx, sandbox.DriverConfig{}); err != nil {
		return err
	}
	if err = s.startPrograms(ctx); err != nil {
		return err
	}
	return s.record(ctx)
}

// startPrograms starts the loops and the provisioner. Upstream's loops resync every second,
// because they handle some changes only then; ours need no resync.
func (s *side) startPrograms(ctx context.Context) error {
	var err error
	if s.port, err = sandbox.FreePort(ctx); err != nil {
		return err
	}
	args := []string{
		"--enable-hostpath-provisioner=true", "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.port), "--authorization-always-allow-paths=/metrics",
	}
	if s.upstream {
		args = append(args, "--pvclaimbinder-sync-period=1s")
	}
	if _, err := s.cluster.StartLoops(ctx, s.upstream, sandbox.Controller{HonorReclaimPolicy: s.honor,
		Args: args}); err != nil {
		return err
	}
	_, err = s.cluster.StartProvisioner(ctx, false, s.driver, sandbox.Controller{HonorReclaimPolicy: s.honor ||
		s.upstream})
	return err
}

func (s *side) record(ctx context.Context) (err error) {
	config := s.plane.RESTConfig()
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	if s.client, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	s.recorder, err = startRecorder(ctx, s.client)
	return err
}

// finish stops the side. It returns an error if one of our programs died or sent an
// unauthorized request.
func (s *side) finish() error {
	err := errors.Join(s.cluster.Ended(), sandbox.Refused(s.plane.AuditLog, "system:serviceaccount:"+deploy.Namespace))
	if err != nil || os.Getenv("EXEUNT_KEEP") != "" {
		return errors.Join(err, s.stop(), fmt.Errorf("the logs are in %s", s.dir))
	}
	return errors.Join(s.stop(), os.RemoveAll(s.dir), s.clearHostPaths())
}

// clearHostPaths removes the remaining directories of the host-path plugin.
func (s *side) clearHostPaths() error {
	var errs []error
	for _, one := range s.recorder.all() {
		path, _, _ := unstructured.NestedString(one.object.Object, "spec", "hostPath", "path")
		if strings.HasPrefix(path, "/tmp/hostpath_pv/") {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

func (s *side) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.recorder != nil {
		s.recorder.stop()
	}
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop(ctx)
}
