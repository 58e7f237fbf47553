package differential

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// side is a cluster with our loops or upstream's. The provisioner is ours on all sides,
// because only the loops are compared.
type side struct {
	name string
	// honor is the gate HonorPVReclaimPolicy of our programs.
	honor bool
	// upstream runs upstream's loops instead of ours.
	upstream bool

	dir       string
	port      int // of the metrics of the loops
	plane     *sandbox.ControlPlane
	driver    *sandbox.Driver
	processes []*sandbox.Process
	client    dynamic.Interface
	recorder  *recorder
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
	if s.plane, err = sandbox.StartControlPlane(ctx, sandbox.Config{Binaries: harness.Binaries(), Dir: s.dir}); err != nil {
		return err
	}
	if err = harness.CheckVersion(s.plane); err != nil {
		return err
	}
	for _, manifests := range []fs.FS{deploy.Manifests, deploy.Recycler, os.DirFS(harness.InCheckout("test", "upstream", "rbac")), os.DirFS(filepath.Join("testdata", "shared"))} {
		if err = sandbox.Apply(ctx, s.plane.RESTConfig(), manifests); err != nil {
			return err
		}
	}
	if s.driver, err = sandbox.StartDriver(ctx, sandbox.DriverConfig{Binaries: harness.Binaries(), Dir: s.dir}); err != nil {
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
	loops := s.plane.StartPVController
	if err := s.choosePort(ctx); err != nil {
		return err
	}
	args := []string{
		"--enable-hostpath-provisioner=true", "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", s.port), "--authorization-always-allow-paths=/metrics",
	}
	if s.upstream {
		loops = s.plane.StartUpstreamLoops
		args = append(args, "--pvclaimbinder-sync-period=1s")
	}
	process, err := loops(ctx, sandbox.Controller{HonorReclaimPolicy: s.honor, Args: args})
	if err != nil {
		return err
	}
	s.processes = append(s.processes, process)
	process, err = s.plane.StartProvisioner(ctx, s.driver, sandbox.Controller{HonorReclaimPolicy: s.honor || s.upstream})
	if err != nil {
		return err
	}
	s.processes = append(s.processes, process)
	return nil
}

// choosePort finds a free port.
func (s *side) choosePort(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("find a free port: %w", err)
	}
	s.port = listener.Addr().(*net.TCPAddr).Port
	return listener.Close()
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
	var errs []error
	for _, process := range s.processes {
		select {
		case <-process.Done():
			errs = append(errs, fmt.Errorf("%s died: %w", process.Name(), process.Err()))
		default:
		}
	}
	errs = append(errs, sandbox.Refused(s.plane.AuditLog, "system:serviceaccount:"+deploy.Namespace))
	if err := errors.Join(errs...); err != nil || os.Getenv("EXEUNT_KEEP") != "" {
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
	var errs []error
	if s.recorder != nil {
		s.recorder.stop()
	}
	for _, process := range s.processes {
		errs = append(errs, process.Stop(ctx))
	}
	if s.driver != nil {
		errs = append(errs, s.driver.Stop(ctx))
	}
	if s.plane != nil {
		errs = append(errs, s.plane.Stop(ctx))
	}
	return errors.Join(errs...)
}
