package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/controller/leader"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
)

const (
	// leaseDuration is that of both leader leases, unless leaders outlast restores: see electionOf.
	leaseDuration = 8 * time.Second
	// callTimeout is the deadline of one call to the driver.
	callTimeout = 3 * time.Second
	// unresolvedAfter is how long the request of a deleted claim is repeated though only the user
	// can help, as when the source of a clone is gone: as long as the longest phase of faults, and
	// shorter than noProgress.
	unresolvedAfter = 30 * time.Second
	// nodeName is the node of all pods.
	nodeName = "node"
	// longLivedSpace is the namespace of the claims that exist for the whole run.
	longLivedSpace = "long-lived"
	// space is the namespace of all other claims.
	space = "soak"
)

// Classes of the claims.
const (
	classDelete = "delete"
	classRetain = "retain"
	classWait   = "wait"
)

// world is all that runs.
type world struct {
	config Config
	dir    string
	disks  *disks
	counts *counters
	// admission: the admission policy is applied. Careful: it is missing, so users wait for the
	// finalizer of a volume before they delete the volume.
	admission, careful bool

	cluster *sandbox.Cluster
	plane   *sandbox.ControlPlane

	mu       sync.Mutex
	replicas [programCount][]*replica
	// proxies stand between the replicas and the API server, with the same rates.
	proxies []*faultproxy.Proxy
	rates   faultproxy.Rates
	// delays are those of the proxies, in their order.
	delays []*delay
	storms *storms
	// faulty are processes that crashed by themselves.
	faulty []string
}

// startWorld starts everything but the programs.
func startWorld(ctx context.Context, config Config, counts *counters) (w *world, err error) {
	dir, err := os.MkdirTemp("", "exeunt-soak-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	w = &world{config: config, dir: dir, counts: counts, storms: newStorms()}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.stop(context.WithoutCancel(ctx)), w.remove())
		}
	}()
	if w.disks, err = startDisks(ctx, config.Binaries, dir); err != nil {
		return w, err
	}
	if err = w.startPlane(ctx); err != nil {
		return w, err
	}
	if !config.Upstream {
		if err = w.recordAdmission(sandbox.Apply(ctx, w.plane.RESTConfig(), deploy.Admission)); err != nil {
			return w, err
		}
	}
	return w, w.fill(ctx)
}

// manifests are the rights of the programs.
func (w *world) manifests() []fs.FS {
	if w.config.Upstream {
		return []fs.FS{deploy.Manifests, rbac.Manifests}
	}
	return []fs.FS{deploy.Manifests, deploy.GarbageCollector}
}

// startPlane starts etcd and kube-apiserver.
func (w *world) startPlane(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cluster, err := sandbox.StartCluster(ctx, sandbox.ClusterConfig{
		Config: sandbox.Config{Binaries: w.config.Binaries, Dir: w.dir}, FixedAddress: true, Manifests: w.manifests(),
	})
	if err == nil {
		w.cluster, w.plane = cluster, cluster.Plane
	}
	return err
}

// client returns the administrator's client, without faults.
func (w *world) client() kubernetes.Interface { return w.plane.Client() }

// fill creates the objects that all users share.
func (w *world) fill(ctx context.Context) error {
	client, immediate, wait := w.client(), storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	var errs []error
	for _, class := range []struct {
		name   string
		policy v1.PersistentVolumeReclaimPolicy
		mode   storagev1.VolumeBindingMode
	}{
		{classDelete, v1.PersistentVolumeReclaimDelete, immediate},
		{classRetain, v1.PersistentVolumeReclaimRetain, immediate},
		{classWait, v1.PersistentVolumeReclaimDelete, wait},
	} {
		_, err := client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: class.name}, Provisioner: w.disks.driver.DriverName,
			ReclaimPolicy: &class.policy, VolumeBindingMode: &class.mode,
		}, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	if w.admission {
		errs = append(errs, w.listDriver(ctx))
	}
	for _, name := range []string{space, longLivedSpace} {
		errs = append(errs, createNamespace(ctx, client, name))
	}
	_, err := client.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}},
		metav1.CreateOptions{})
	errs = append(errs, err)
	_, err = client.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: w.disks.driver.DriverName,
			NodeID: nodeName}}},
	}, metav1.CreateOptions{})
	return errors.Join(append(errs, err)...)
}

// listDriver lists the driver for the admission policy.
func (w *world) listDriver(ctx context.Context) error {
	body := fmt.Appendf(nil, `{"data":{%q:""}}`, w.disks.driver.DriverName)
	_, err := w.client().CoreV1().ConfigMaps(deploy.Namespace).
		Patch(ctx, deploy.Drivers, types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("list driver for the admission policy: %w", err)
	}
	return nil
}

// createNamespace creates a namespace unless it exists.
func createNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// startPrograms starts the replicas of all programs.
func (w *world) startPrograms(ctx context.Context) error {
	for program := range w.replicas {
		for number := range w.replicasOf(Program(program)) {
			r := &replica{program: Program(program), number: number, ended: w.noteEnd}
			r.start = func(ctx context.Context, log string) (*sandbox.Process, error) { return w.launch(ctx, r, log) }
			w.replicas[program] = append(w.replicas[program], r)
		}
	}
	return w.runPrograms(ctx)
}

// runPrograms starts all replicas, which do not run, behind new proxies.
func (w *world) runPrograms(ctx context.Context) error {
	if err := w.openProxies(ctx); err != nil {
		return err
	}
	w.setRates(w.rates)
	for _, replicas := range w.replicas {
		for _, r := range replicas {
			r.run(ctx)
		}
	}
	return nil
}

// crashes returns the processes that crashed by themselves.
func (w *world) crashes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.faulty)
}

// noteEnd counts the end of a process, and remembers a crash of its own.
func (w *world) noteEnd(process *sandbox.Process) {
	w.counts.add(topicRestarts, "program", 1)
	if text, err := os.ReadFile(process.LogFile()); err == nil &&
		strings.Contains(string(text), leader.ErrRestored.Error()) {
		w.counts.add(topicRestarts, "program, because etcd was restored", 1)
	}
	if err := crash(process); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.faulty = append(w.faulty, err.Error())
	}
}

// launch starts one process of ours or of upstream.
func (w *world) launch(ctx context.Context, r *replica, log string) (*sandbox.Process, error) {
	controller := sandbox.Controller{Name: log, HonorReclaimPolicy: true, Kubeconfig: r.kubeconfig}
	election := electionOf(w.config.Seed)
	if election.pod {
		controller.Env = []string{"POD_UID=" + r.name()}
	}
	if r.program != Provisioner {
		controller.Args = election.args("leader-elect", "")
		if w.isAlone(r.program) {
			controller.Args = []string{"--leader-elect=false"}
		}
	}
	switch r.program {
	case PVController:
		controller.Args = append(controller.Args, "--pvclaimbinder-sync-period=5s")
		return w.plane.StartLoops(ctx, w.config.Upstream, controller)
	case Collector:
		return w.plane.StartGarbageCollector(ctx, controller)
	case Provisioner:
	}
	controller.Env = append(controller.Env, "NAMESPACE="+deploy.Namespace, "POD_NAMESPACE="+deploy.Namespace,
		"POD_NAME="+r.name())
	controller.Args = append(election.args("leader-election", "--leader-election-namespace="+deploy.Namespace),
		"--timeout="+callTimeout.String(), "--retry-interval-start=100ms", "--retry-interval-max=5s")
	if !w.config.Upstream {
		controller.Args = append(controller.Args, "--journal-unresolved-after="+unresolvedAfter.String())
	}
	return w.plane.StartSidecar(ctx, w.config.Upstream, &w.disks.driver, controller)
}

// haltPrograms kills all replicas.
func (w *world) haltPrograms() {
	var all sync.WaitGroup
	for _, replicas := range w.replicas {
		for _, r := range replicas {
			all.Go(r.halt)
		}
	}
	all.Wait()
}

// stop ends everything and keeps the logs.
func (w *world) stop(ctx context.Context) error {
	w.haltPrograms()
	errs := []error{w.closeProxies()}
	if w.cluster != nil {
		errs = append(errs, w.cluster.Stop(ctx))
	}
	if w.disks != nil {
		errs = append(errs, w.disks.stop(ctx))
	}
	return errors.Join(errs...)
}

// remove deletes data and logs.
func (w *world) remove() error {
	if err := os.RemoveAll(w.dir); err != nil {
		return fmt.Errorf("remove %s: %w", filepath.Clean(w.dir), err)
	}
	return nil
}
