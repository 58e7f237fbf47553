package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"
	librarymetrics "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/deletion"
	"github.com/exeunt-io/exeunt/pkg/controller/provisioning"
	"github.com/exeunt-io/exeunt/pkg/csi"
)

// Run works until the context ends.
func (o *options) Run(ctx context.Context) error {
	calls := metrics.NewCSIMetricsManagerWithOptions("", metrics.WithProcessStartTime(false))
	counts := librarymetrics.New("controller")
	if err := serve(ctx, o, calls, collectors(counts)); err != nil {
		return err
	}
	clients, err := o.Clients("provisioner")
	if err != nil {
		return err
	}
	driver, err := csi.Connect(ctx, csi.Config{Address: o.csiAddress, Timeout: o.timeout, Wait: o.driverWait, Metrics: calls})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case !driver.CreatesVolumes():
		return fmt.Errorf("driver %s at %s has no capability CREATE_DELETE_VOLUME, so there is nothing to provision with it", driver.Name(), o.csiAddress)
	}
	return provision(ctx, o, clients, driver, counts)
}

// provision runs the claim side and the volume side until the context ends.
func provision(ctx context.Context, options *options, clients *program.Clients, driver *csi.Driver, counts librarymetrics.Metrics) error {
	factory := informers.NewSharedInformerFactoryWithOptions(clients.Objects, 0, informers.WithTransform(controller.StripManagedFields))
	claims := factory.Core().V1().PersistentVolumeClaims().Informer()
	classes := factory.Storage().V1().StorageClasses().Informer()
	volumes, err := provisioning.NewVolumes(factory.Core().V1().PersistentVolumes().Informer(), options.Honor())
	if err != nil {
		return fmt.Errorf("watch volumes: %w", err)
	}
	recorder, stopEvents := program.Recorder(ctx, clients.Events, driver.Name())
	defer stopEvents()

	deletions, err := deletion.New(deletion.Config{
		Client: clients.Objects, Volumes: volumes.SharedIndexInformer, Attachments: attachments(factory, driver),
		Driver: driver, Translator: translator{}, Reporter: controller.NewReporter(recorder), Metrics: counts,
		Backoff: controller.Backoff{First: options.retryStart, Most: options.retryMax}, Honor: options.Honor(), Requeue: volumes.Requeue,
	})
	if err != nil {
		return err
	}
	inputs := provisioning.NewInputs(provisioning.InputsConfig{Driver: driver, DefaultFSType: options.defaultFSType})
	provisioner := &provisioning.Provisioner{Deletion: deletions, Driver: driver, Inputs: inputs, Honor: options.Honor()}
	creations := library.NewProvisionController(klog.FromContext(ctx), clients.Objects, driver.Name(), provisioner, append(libraryOptions(options, counts),
		library.ClaimsInformer(claims), library.ClassesInformer(classes), library.VolumesInformer(volumes))...)

	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	klog.FromContext(ctx).Info("Filling caches", "driver", driver.Name(), "HonorPVReclaimPolicy", options.Honor())
	for _, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil
		}
	}
	klog.FromContext(ctx).Info("Working", "driver", driver.Name(), "workers", options.workers)
	var running sync.WaitGroup
	running.Go(func() { creations.Run(ctx) })
	if options.Honor() {
		running.Go(func() { deletions.Run(ctx, options.workers) })
	}
	running.Wait()
	return nil
}

// libraryOptions set the library up to keep the queue of claims and nothing else:
// no re-sync, no leader election, no finalizers. The finalizer External is in the
// object that Provision returns.
func libraryOptions(options *options, counts librarymetrics.Metrics) []func(*library.ProvisionController) error {
	limiter := func() workqueue.TypedRateLimiter[any] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[any](options.retryStart, options.retryMax)
	}
	return []func(*library.ProvisionController) error{
		library.LeaderElection(false),
		library.Threadiness(options.workers),
		library.ResyncPeriod(0),
		library.FailedProvisionThreshold(0),
		library.FailedDeleteThreshold(0),
		library.RateLimiter(limiter()),
		library.CreateProvisionedPVLimiter(limiter()),
		library.AddFinalizer(false),
		library.MetricsInstance(counts),
	}
}

// attachments is the informer of VolumeAttachments, nil for a driver that does
// not publish volumes: then nothing is ever attached by it.
func attachments(factory informers.SharedInformerFactory, driver *csi.Driver) cache.SharedIndexInformer {
	if !driver.Publishes() {
		return nil
	}
	return factory.Storage().V1().VolumeAttachments().Informer()
}

func collectors(counts librarymetrics.Metrics) []prometheus.Collector {
	return []prometheus.Collector{
		counts.PersistentVolumeClaimProvisionTotal,
		counts.PersistentVolumeClaimProvisionFailedTotal,
		counts.PersistentVolumeClaimProvisionDurationSeconds,
		counts.PersistentVolumeDeleteTotal,
		counts.PersistentVolumeDeleteFailedTotal,
		counts.PersistentVolumeDeleteDurationSeconds,
	}
}
