package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	domain "github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/provisioner/capacity"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// capacityOptions are the flags of CSIStorageCapacity objects.
type capacityOptions struct {
	enabled, immediate bool
	interval           time.Duration
	// ownerLevel is the number of controller references from the pod to the owner of the
	// objects; negative for no owner.
	ownerLevel int
	workers    uint
	// qps and burst are the rate limits of requests to the API server.
	qps   float32
	burst int
}

func (o *capacityOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.enabled, "enable-capacity", o.enabled,
		"publish the capacity of the driver in CSIStorageCapacity objects")
	flags.BoolVar(&o.immediate, "capacity-for-immediate-binding", o.immediate,
		"publish capacity for classes with Immediate binding too, which the scheduler does not need")
	flags.DurationVar(&o.interval, "capacity-poll-interval", o.interval, "time between two polls of the driver's capacity")
	flags.IntVar(&o.ownerLevel, "capacity-ownerref-level", o.ownerLevel,
		"owner of the objects: -1 none, 0 the pod (POD_NAME in NAMESPACE), 1 the controller of the pod, 2 the controller of that controller")
	flags.UintVar(&o.workers, "capacity-threads", o.workers, "number of workers for CSIStorageCapacity objects")
	flags.Float32Var(&o.qps, "kube-api-capacity-qps", o.qps,
		"rate limit of capacity requests to the API server, per second")
	flags.IntVar(&o.burst, "kube-api-capacity-burst", o.burst, "burst of capacity requests to the API server")
}

func (o *capacityOptions) check() error {
	switch {
	case !o.enabled:
		return nil
	case o.workers < 1:
		return errors.New("--capacity-threads must be at least 1")
	case o.interval <= 0:
		return errors.New("--capacity-poll-interval must be longer than 0")
	case o.burst < 0:
		return errors.New("--kube-api-capacity-burst must not be negative")
	case os.Getenv("NAMESPACE") == "":
		return errors.New("--enable-capacity needs the environment variable NAMESPACE, the namespace of CSIStorageCapacity objects")
	case o.ownerLevel >= 0 && os.Getenv("POD_NAME") == "":
		return errors.New("--enable-capacity needs the environment variable POD_NAME to find the owner of CSIStorageCapacity objects; --capacity-ownerref-level=-1 needs no owner")
	}
	return nil
}

// wireCapacity creates the controller that publishes capacity.
func (w *wiring) wireCapacity(ctx context.Context) error {
	options := w.options.capacity
	if !options.enabled {
		return nil
	}
	if !w.driver.ReportsCapacity() {
		klog.FromContext(ctx).Info("The driver does not announce GET_CAPACITY; asking it for capacity nevertheless", "driver",
			w.driver.Name())
	}
	config := rest.AddUserAgent(rest.CopyConfig(w.clients.Config), "capacity")
	config.QPS, config.Burst = options.qps, options.burst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the API server for capacity: %w", err)
	}
	manager, managerErr := w.capacityManager(ctx, config)
	segments, segmentsErr := w.segments()
	if err := errors.Join(managerErr, segmentsErr); err != nil {
		return err
	}
	w.capacity, err = capacity.New(capacity.Config{
		Client: client, Driver: w.driver, Manager: manager, Segments: segments,
		Classes:   w.factory.Storage().V1().StorageClasses().Informer(),
		Volumes:   w.factory.Core().V1().PersistentVolumes().Informer(),
		Immediate: options.immediate, Interval: options.interval, Backoff: w.options.backoff(),
	})
	if err != nil {
		return err
	}
	w.runOnTerm(func(ctx context.Context) error {
		legacyregistry.CustomMustRegister(capacity.NewCollector(w.capacity)) // on the leader only, which has the objects
		return w.capacity.Watch(ctx)
	}, func(ctx context.Context) { w.capacity.Run(ctx, int(options.workers)) })
	return nil
}

func (w *wiring) capacityManager(ctx context.Context, config *rest.Config) (domain.Manager, error) {
	manager := domain.Manager{Driver: w.driver.Name(), ID: domain.ManagerID(w.options.node.name()),
		Namespace: os.Getenv("NAMESPACE")}
	if w.options.capacity.ownerLevel < 0 {
		return manager, nil
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return manager, fmt.Errorf("connect to the API server for owners: %w", err)
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return manager, fmt.Errorf("connect to the API server for discovery: %w", err)
	}
	pod := metav1.ObjectMeta{Namespace: manager.Namespace, Name: os.Getenv("POD_NAME")}
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))
	manager.Owner, err = capacity.Owner(ctx, client, kinds, pod, w.options.capacity.ownerLevel)
	if err != nil {
		return manager, fmt.Errorf("find the owner of CSIStorageCapacity objects, --capacity-ownerref-level=%d: %w",
			w.options.capacity.ownerLevel, err)
	}
	return manager, nil
}

// segments returns the topology segments of the objects.
func (w *wiring) segments() (capacity.Segments, error) {
	if w.options.node.enabled {
		return capacity.Local(topology.SegmentOf(w.topology)), nil
	}
	nodes, registered, err := w.nodes()
	return capacity.NewNodes(w.driver.Name(), nodes, registered), err
}
