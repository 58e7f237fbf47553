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

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/nodedeployment"
)

// nodeOptions are the flags of node deployment: a provisioner runs on each node and serves
// that node only.
type nodeOptions struct {
	enabled bool
	// immediate: claims with Immediate binding are served, too.
	immediate bool
	// baseDelay and maxDelay are the bounds of the random delay before a node selects
	// itself for a claim with Immediate binding.
	baseDelay, maxDelay time.Duration
}

func (o *nodeOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.enabled, "node-deployment", o.enabled,
		"serve only the node NODE_NAME, for a driver that runs on each node")
	flags.BoolVar(&o.immediate, "node-deployment-immediate-binding", o.immediate,
		"with --node-deployment, serve claims with Immediate binding too: a node with capacity selects itself")
	flags.DurationVar(&o.baseDelay, "node-deployment-base-delay", o.baseDelay,
		"with --node-deployment, longest random delay before a node first selects itself for a claim with Immediate binding")
	flags.DurationVar(&o.maxDelay, "node-deployment-max-delay", o.maxDelay,
		"with --node-deployment, longest delay between two attempts of a node to select itself")
}

func (o *nodeOptions) check() error {
	switch {
	case !o.enabled:
		return nil
	case os.Getenv("NODE_NAME") == "":
		return errors.New("--node-deployment needs the environment variable NODE_NAME, the served node")
	case o.baseDelay < 0 || o.maxDelay < 0:
		return errors.New("--node-deployment-base-delay and --node-deployment-max-delay must not be negative")
	}
	return nil
}

// name returns the served node, "" for all nodes.
func (o *nodeOptions) name() string {
	if !o.enabled {
		return ""
	}
	return os.Getenv("NODE_NAME")
}

// wireNode reads the topology of the served node and creates the controller that selects
// the node for claims with Immediate binding.
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
		klog.FromContext(ctx).Info("With --leader-election only the provisioner of one node works. Leave the flag out so that the provisioner of every node works")
	}
	if !options.immediate {
		return nil
	}
	selection, err := nodedeployment.New(w.nodeSelection())
	if err != nil {
		return err
	}
	watch := func(ctx context.Context) error {
		select {
		case <-w.engine.Started(): // a process that cannot serve a claim must not select its node
			return selection.Watch(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.runOnTerm(watch, func(ctx context.Context) { selection.Run(ctx, w.options.workers) })
	return nil
}

// nodeSelection returns the configuration of the controller that selects the served node for claims.
func (w *wiring) nodeSelection() nodedeployment.Config {
	options := w.options.node
	return nodedeployment.Config{
		Client:  w.clients.Objects,
		Claims:  w.factory.Core().V1().PersistentVolumeClaims().Informer(),
		Classes: w.factory.Storage().V1().StorageClasses().Informer(),

		Driver:          w.driver,
		CapacityRequest: w.capacityRequest(),
		ReachesSource:   w.reachesSource(),
		Serves:          w.scope().Serves,
		Reporter:        controller.NewReporter(w.recorder),

		Node:        options.name(),
		HasTopology: w.driver.HasTopology(),
		Topology:    w.nodeTopology(),
		BaseDelay:   min(options.baseDelay, options.maxDelay), // the flags do not depend on each other
		MaxDelay:    options.maxDelay,
	}
}

// nodeTopology returns the topology of the served node, nil for a driver without topology.
func (w *wiring) nodeTopology() map[string]string {
	if !w.driver.HasTopology() {
		return nil
	}
	return w.topology
}

// capacityRequest returns the builder of GetCapacity requests for claims.
func (w *wiring) capacityRequest() func(context.Context, *v1.PersistentVolumeClaim,
	*storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
	// Without a client: the request follows from claim and class alone.
	inputs := csibackend.NewInputs(csibackend.InputsConfig{Driver: w.driver, Translator: w.translator(),
		Settings: w.options.volumes.settings})
	return func(ctx context.Context, claim *v1.PersistentVolumeClaim,
		class *storagev1.StorageClass) (*spec.GetCapacityRequest, error) {
		return inputs.CapacityRequest(ctx, claim, class, w.scope().VolumeName(claim))
	}
}

// reachesSource returns the function that reports whether the served node reaches the volume that a claim is a clone of,
// nil for a driver without clones.
func (w *wiring) reachesSource() func(context.Context, *v1.PersistentVolumeClaim) (bool, error) {
	if !w.driver.Clones() {
		return nil
	}
	return csibackend.NewInputs(csibackend.InputsConfig{
		Client: w.clients.Objects, Driver: w.driver, Translator: w.translator(), Reaches: w.reaches(),
	}).ReachesSource
}

// reaches returns the function that reports whether the served node reaches a volume, nil
// if this process serves all nodes.
func (w *wiring) reaches() func(volume *v1.PersistentVolume) bool {
	if !w.options.node.enabled {
		return nil
	}
	return w.scope().Reaches
}
