package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"
	librarymetrics "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/deletion"
	"github.com/exeunt-io/exeunt/pkg/controller/provisioning"
)

// wireVolumes makes the two sides that make and delete volumes.
func (w *wiring) wireVolumes() error {
	volumes, err := provisioning.NewVolumes(w.factory.Core().V1().PersistentVolumes().Informer(), w.options.Honor())
	if err != nil {
		return fmt.Errorf("watch volumes: %w", err)
	}
	deletions, err := deletion.New(deletion.Config{
		Client: w.clients.Objects, Volumes: volumes.SharedIndexInformer, Attachments: w.attachments(),
		Driver: w.driver, Translator: translator{}, Reporter: controller.NewReporter(w.recorder), Metrics: w.counts,
		Backoff: w.options.backoff(), Honor: w.options.Honor(), Requeue: volumes.Requeue,
	})
	if err != nil {
		return err
	}
	inputs := provisioning.NewInputs(provisioning.InputsConfig{Driver: w.driver, DefaultFSType: w.options.defaultFSType})
	provisioner := &provisioning.Provisioner{Deletion: deletions, Driver: w.driver, Inputs: inputs, Honor: w.options.Honor()}
	creations := library.NewProvisionController(klog.FromContext(w.ctx), w.clients.Objects, w.driver.Name(), provisioner, append(w.libraryOptions(),
		library.ClaimsInformer(w.factory.Core().V1().PersistentVolumeClaims().Informer()),
		library.ClassesInformer(w.factory.Storage().V1().StorageClasses().Informer()),
		library.VolumesInformer(volumes))...)
	w.work = append(w.work, creations.Run)
	if w.options.Honor() {
		w.work = append(w.work, func(ctx context.Context) { deletions.Run(ctx, w.options.workers) })
	}
	return nil
}

// libraryOptions set the library up to keep the queue of claims and nothing else:
// no re-sync, no leader election, no finalizers. The finalizer External is in the
// object that Provision returns.
func (w *wiring) libraryOptions() []func(*library.ProvisionController) error {
	limiter := func() workqueue.TypedRateLimiter[any] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[any](w.options.retryStart, w.options.retryMax)
	}
	return []func(*library.ProvisionController) error{
		library.LeaderElection(false),
		library.Threadiness(w.options.workers),
		library.ResyncPeriod(0),
		library.FailedProvisionThreshold(0),
		library.FailedDeleteThreshold(0),
		library.RateLimiter(limiter()),
		library.CreateProvisionedPVLimiter(limiter()),
		library.AddFinalizer(false),
		library.MetricsInstance(w.counts),
	}
}

// attachments is the informer of VolumeAttachments, nil for a driver that does
// not publish volumes: then nothing is ever attached by it.
func (w *wiring) attachments() cache.SharedIndexInformer {
	if !w.driver.Publishes() {
		return nil
	}
	return w.factory.Storage().V1().VolumeAttachments().Informer()
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
