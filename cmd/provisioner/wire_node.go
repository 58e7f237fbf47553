package main

import (
	"context"
	"errors"
	"os"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/spf13/pflag"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/nodedeployment"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// nodeOptions say whether a provisioner stands on each node, and serves that node.
type nodeOptions struct {
	enabled, immediate bool
	// baseDelay and maxDelay bound the time until a node is chosen for a claim that
	// may be for any.
	baseDelay, maxDelay time.Duration
}

func (o *nodeOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.enabled, "node-deployment", o.enabled, "serve only the node NODE_NAME, with a driver that stands on each node")
	flags.BoolVar(&o.immediate, "node-deployment-immediate-binding", o.immediate, "with --node-deployment, serve classes of immediate binding too: the nodes choose among themselves")
	flags.DurationVar(&o.baseDelay, "node-deployment-base-delay", o.baseDelay, "with --node-deployment, longest time until a node first tries to get a claim of immediate binding")
	flags.DurationVar(&o.maxDelay, "node-deployment-max-delay", o.maxDelay, "with --node-deployment, longest time between two such tries")
}

func (o *nodeOptions) check() error {
	switch {
	case !o.enabled:
		return nil
	case os.Getenv("NODE_NAME") == "":
		return errors.New("--node-deployment needs the environment variable NODE_NAME, the node that is served")
	case o.baseDelay < 0 || o.maxDelay < 0:
		return errors.New("--node-deployment-base-delay and --node-deployment-max-delay must not be negative")
	}
	return nil
}

// name is the node that is served, "" for all.
func (o *nodeOptions) name() string {
	if !o.enabled {
		return ""
	}
	return os.Getenv("NODE_NAME")
}

// wireNode finds out where the node is and makes the controller that chooses it for
// claims which may be for any.
func (w *wiring) wireNode(ctx context.Context) error {
	options := w.options.node
	if !options.enabled {
		return nil
	}
	var err error
	if w.topology, err = w.driver.NodeTopology(ctx); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving one node", "node", options.name(), "topology", w.topology)
	if w.options.election.enabled {
		klog.FromContext(ctx).Info("With --leader-election, the provisioner of one node alone works; leave it out, so that that of each node does")
	}
	if !options.immediate {
		return nil
	}
	choices, err := nodedeployment.New(nodedeployment.Config{
		Client: w.clients.Objects,
		Claims: w.factory.Core().V1().PersistentVolumeClaims().Informer(), Classes: w.factory.Storage().V1().StorageClasses().Informer(),
		Driver: w.driver, Question: w.question(), Serves: w.serves,
		Node: options.name(), HasTopology: w.driver.HasTopology(), Topology: w.place(),
		BaseDelay: min(options.baseDelay, options.maxDelay), MaxDelay: options.maxDelay,
	})
	if err != nil {
		return err
	}
	w.work = append(w.work, func(ctx context.Context) { choices.Run(ctx, w.options.workers) })
	return nil
}

// place is where the node is to a driver with topology.
func (w *wiring) place() map[string]string {
	if !w.driver.HasTopology() {
		return nil
	}
	return w.topology
}

// question is what the driver is asked about room for a claim: the same as when its
// volume is made.
func (w *wiring) question() func(context.Context, *v1.PersistentVolumeClaim, *storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
	inputs := csibackend.NewInputs(csibackend.InputsConfig{Driver: w.driver, Translator: w.translator(), Settings: w.options.volumes.settings})
	return func(ctx context.Context, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
		return inputs.Room(ctx, claim, class, w.volumeName(claim))
	}
}

// servedBy says who serves a claim, nil if this process serves all of them.
func (w *wiring) servedBy() func(claim *v1.PersistentVolumeClaim) provision.Server {
	if !w.options.node.enabled {
		return nil
	}
	own := w.options.node.name()
	return func(claim *v1.PersistentVolumeClaim) provision.Server {
		return provision.ServerOf(claim.Annotations[storage.AnnSelectedNode], own)
	}
}

// reaches says whether a volume is this process's to reclaim, nil if all are.
func (w *wiring) reaches() func(volume *v1.PersistentVolume) bool {
	if !w.options.node.enabled {
		return nil
	}
	return func(volume *v1.PersistentVolume) bool { return topology.Reaches(w.topology, volume.Spec.NodeAffinity) }
}
