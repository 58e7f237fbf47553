package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/node/internal/launcher"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// NodeConfig configures a node.
type NodeConfig struct {
	// Name is the name of the Node object, ProviderID its providerID.
	Name, ProviderID string
	// LeaseSeconds is the duration of its Lease.
	LeaseSeconds int
	// Images are archives that are imported.
	Images []string
}

// Node is a machine that runs kubelet and containerd.
type Node struct {
	Name string
	// Dir has the data of the node.
	Dir string

	cluster *Cluster
	process *sandbox.Process
}

// startNode starts the node with all images, and waits until it is ready.
func (c *Cluster) startNode(ctx context.Context) (err error) {
	images, err := filepath.Glob(filepath.Join(c.imagesDir(), "*.image.tar"))
	if err != nil || len(images) == 0 {
		return errors.Join(fmt.Errorf("find images in %s: there are none, run `make node` first", c.imagesDir()), err)
	}
	c.node, err = c.boot(ctx, c.NodeDir(), NodeConfig{Name: NodeName, LeaseSeconds: 40, Images: images})
	return err
}

// StartNode starts another node, with the image of the test's pods, and waits until it is ready.
func (c *Cluster) StartNode(ctx context.Context, config NodeConfig) (*Node, error) {
	config.Images = []string{filepath.Join(c.imagesDir(), "node.image.tar")}
	return c.boot(ctx, filepath.Join(c.config.Dir, config.Name), config)
}

func (c *Cluster) imagesDir() string { return filepath.Join(c.config.Binaries, "node", "images") }

// boot starts the machine of a node, and waits until the node is ready.
func (c *Cluster) boot(ctx context.Context, dir string, config NodeConfig) (*Node, error) {
	kubeconfig, err := c.kubeconfig(ctx, "system:node:"+config.Name, "system:nodes")
	if err != nil {
		return nil, err
	}
	n := &Node{Name: config.Name, Dir: dir, cluster: c}
	n.process, err = c.run(ctx, filepath.Base(dir), filepath.Join("node", "node"), "start", "--name="+config.Name,
		"--dir="+dir, "--programs="+filepath.Join(c.config.Binaries, "node"),
		"--images="+strings.Join(config.Images, ","), "--pause="+c.Image("node"),
		"--server="+strings.TrimPrefix(c.running.Plane.URL, "https://"), "--kubeconfig="+kubeconfig,
		"--provider-id="+config.ProviderID, "--lease-seconds="+strconv.Itoa(config.LeaseSeconds))
	if err != nil {
		return nil, err
	}
	return n, n.Await(ctx)
}

// AwaitNode waits until the node is ready.
func (c *Cluster) AwaitNode(ctx context.Context) error { return c.node.Await(ctx) }

// Await waits until the node is ready.
func (n *Node) Await(ctx context.Context) error {
	return n.cluster.Await(ctx, "the node is ready", func(ctx context.Context) error {
		node, err := n.cluster.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the node has the conditions %v", node.Status.Conditions)
	})
}

// PowerOff ends the machine, as loss of power does: all processes of the node have ended when it returns.
func (n *Node) PowerOff(ctx context.Context) error {
	return n.cluster.running.End(ctx, n.process)
}

// KillKubelet ends kubelet, which is not started again before StartKubelet.
func (n *Node) KillKubelet() error {
	if err := os.WriteFile(filepath.Join(n.Dir, launcher.KubeletHeld), nil, 0o600); err != nil {
		return fmt.Errorf("hold kubelet: %w", err)
	}
	_, err := n.Kill(n.cluster.Kubelet())
	return err
}

// StartKubelet lets kubelet run again.
func (n *Node) StartKubelet() error {
	if err := os.Remove(filepath.Join(n.Dir, launcher.KubeletHeld)); err != nil {
		return fmt.Errorf("let kubelet run again: %w", err)
	}
	return nil
}
