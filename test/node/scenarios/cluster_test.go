package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/test/node/internal/driver"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
)

const (
	// patience bounds every wait on a busy machine.
	patience = 2 * time.Minute
	nodeName = "node-1"
	// asKubectl is the environment variable that makes the test binary run as kubectl.
	asKubectl = "EXEUNT_TEST_AS_KUBECTL"
	// loopsOff are the loops that pv-controller replaces.
	loopsOff = ",-persistentvolume-binder-controller,-persistentvolume-protection-controller,-persistentvolumeclaim-protection-controller"
	// registry is that of the manifests.
	registry = "registry.invalid/exeunt/"
)

func TestMain(m *testing.M) {
	if os.Getenv(asKubectl) != "" {
		if err := kubectlcmd.NewDefaultKubectlCommand().Execute(); err != nil {
			cmdutil.CheckErr(err)
		}
		return
	}
	m.Run()
}

// cluster is a control plane with one node.
type cluster struct {
	plane    *sandbox.ControlPlane
	client   kubernetes.Interface
	binaries sandbox.Binaries
	// dir has everything, nodeDir the data of the node.
	dir, nodeDir string
	// node is the launcher.
	node *sandbox.Process
}

// start runs a cluster with the programs of one side until the test ends, and waits until
// the driver is registered on the node.
func start(t *testing.T, side string) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "node-") // the paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{binaries: sandbox.Binaries{Dir: os.Getenv("EXEUNT_BIN")}, dir: dir, nodeDir: filepath.Join(dir, "node")}
	t.Cleanup(func() { c.finish(t) })
	c.startControlPlane(t, side)
	c.startNode(t)
	c.install(t, side)
	return c
}

// finish removes the directory, unless the test failed.
func (c *cluster) finish(t *testing.T) {
	if t.Failed() {
		t.Logf("data and logs are in %s", c.dir)
		return
	}
	if err := os.RemoveAll(c.dir); err != nil {
		t.Errorf("remove data: %v", err)
	}
}

// startControlPlane starts API server, kube-controller-manager and kube-scheduler.
func (c *cluster) startControlPlane(t *testing.T, side string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	c.plane, err = sandbox.StartControlPlane(ctx, sandbox.Config{Binaries: c.binaries, Dir: c.dir, ExtraArgs: []string{
		"enable-admission-plugins=ServiceAccount", "kubelet-preferred-address-types=InternalIP",
	}})
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, c.plane.Process)
	c.client = c.plane.Client()
	loops := "--controllers=*"
	if side == "ours" {
		loops += loopsOff
	}
	keys := filepath.Join(c.dir, "data", "pki")
	c.run(t, "kube-controller-manager", filepath.Join(c.binaries.Dir, "upstream", "kube-controller-manager"),
		loops, "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials",
		"--root-ca-file="+filepath.Join(keys, "ca.crt"), "--service-account-private-key-file="+filepath.Join(keys, "service-account.key"),
		"--kubeconfig="+c.kubeconfig(t, "system:kube-controller-manager"))
	c.run(t, "kube-scheduler", filepath.Join(c.binaries.Dir, "node", "kube-scheduler"),
		"--leader-elect=false", "--secure-port=0", "--kubeconfig="+c.kubeconfig(t, "system:kube-scheduler"))
}

// startNode starts the node with all images, and waits until it is ready.
func (c *cluster) startNode(t *testing.T) {
	t.Helper()
	images, err := filepath.Glob(filepath.Join(c.binaries.Dir, "node", "images", "*.image.tar"))
	if err != nil || len(images) == 0 {
		t.Fatalf("there are no images (%v), run `make node` first", err)
	}
	c.node = c.run(t, "node", filepath.Join(c.binaries.Dir, "node", "node"), "start", "--name="+nodeName, "--dir="+c.nodeDir,
		"--programs="+filepath.Join(c.binaries.Dir, "node"), "--images="+strings.Join(images, ","), "--pause="+registry+"node:v0.1.0",
		"--server="+strings.TrimPrefix(c.plane.URL, "https://"), "--kubeconfig="+c.kubeconfig(t, "system:node:"+nodeName, "system:nodes"))
	stopAtEnd(t, c.node) // it removes its cgroups
	eventually(t, "the node is ready", func(ctx context.Context) error {
		node, err := c.client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", node.Status.Conditions)
	})
}

// install applies the manifests of a side and waits until the driver is registered.
func (c *cluster) install(t *testing.T, side string) {
	t.Helper()
	site := filepath.Join(c.dir, "site")
	if err := os.CopyFS(site, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(site, "deploy"), os.DirFS("../../../deploy")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(site, "rbac"), rbac.Manifests); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "apply", "-f", "../../../deploy/namespace.yaml")
	c.kubectl(t, "create", "namespace", "storage")
	c.kubectl(t, "apply", "-k", filepath.Join(site, side))
	eventually(t, "the driver is registered on the node", func(ctx context.Context) error {
		node, err := c.client.StorageV1().CSINodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, registered := range node.Spec.Drivers {
			if registered.Name == driver.Name {
				return nil
			}
		}
		return fmt.Errorf("drivers %v", node.Spec.Drivers)
	})
}

// kubeconfig writes a kubeconfig for a user and returns its file.
func (c *cluster) kubeconfig(t *testing.T, user string, groups ...string) string {
	t.Helper()
	file, err := c.plane.Kubeconfig(t.Context(), sandbox.User(user, groups...))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// run starts a program, which is killed when the test ends: kube-scheduler takes SIGTERM for
// an error.
func (c *cluster) run(t *testing.T, name, path string, args ...string) *sandbox.Process {
	t.Helper()
	process, err := sandbox.Start(t.Context(), sandbox.Program{Name: name, Path: path, Args: args, LogFile: filepath.Join(c.dir, name+".log")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(process.Err(), process.Kill()); err != nil {
			t.Error(err)
		}
	})
	return process
}

// stopAtEnd stops a process when the test ends, and fails the test if the process ended
// before.
func stopAtEnd(t *testing.T, process *sandbox.Process) {
	t.Helper()
	t.Cleanup(func() {
		if err := process.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// kubectl runs a kubectl command as the administrator.
func (c *cluster) kubectl(t *testing.T, args ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, args...)
	command.Env = append(os.Environ(), asKubectl+"=1", "KUBECONFIG="+c.plane.AdminKubeconfig, "HOME="+c.dir)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, output)
	}
}

// eventually waits until check returns nil.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s: %v", what, err)
		case <-tick.C:
		}
	}
}
