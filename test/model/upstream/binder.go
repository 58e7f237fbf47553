package upstream

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// The times after which upstream reconciles every object again.
const (
	binderResync     = 15 * time.Second
	sidecarResync    = 15 * time.Minute
	protectionResync = 12 * time.Hour
)

var backoff = controller.Backoff{Initial: time.Second, Max: time.Minute}

// binder is the loop persistentvolume-binder-controller.
type binder struct {
	client kubernetes.Interface
	driver process.Driver
	honor  bool

	volumeInformer, claimInformer, classInformer cache.SharedIndexInformer

	volumes    *store[*v1.PersistentVolume]
	claims     *store[*v1.PersistentVolumeClaim]
	operations *operations

	claimLoop, volumeLoop, operationLoop *controller.Loop
}

func newBinder(env *process.Env) *binder {
	b := &binder{
		client:         env.Client,
		driver:         env.Driver,
		honor:          env.Honor,
		volumeInformer: env.Informers["persistentvolumes"],
		claimInformer:  env.Informers["persistentvolumeclaims"],
		classInformer:  env.Informers["storageclasses"],
		volumes:        newStore[*v1.PersistentVolume](),
		claims:         newStore[*v1.PersistentVolumeClaim](),
		operations:     &operations{pending: map[string]operation{}},
	}
	b.claimLoop = controller.NewLoop("binder-claims", backoff, b.reconcileClaim)
	b.volumeLoop = controller.NewLoop("binder-volumes", backoff, b.reconcileVolume)
	b.operationLoop = controller.NewLoop("binder-operations", backoff, b.runOperation)
	return b
}

func (b *binder) handlers() []controller.EventHandler {
	return []controller.EventHandler{
		{Informer: b.volumeInformer, Handler: controller.OnChange(
			func(_, volume *v1.PersistentVolume) { b.volumeLoop.Enqueue(volume.Name) },
			func(volume *v1.PersistentVolume) { b.volumeLoop.Enqueue(volume.Name) })},
		{Informer: b.claimInformer, Handler: controller.OnChange(
			func(_, claim *v1.PersistentVolumeClaim) { b.claimLoop.Enqueue(controller.Key(claim)) },
			func(claim *v1.PersistentVolumeClaim) { b.claimLoop.Enqueue(controller.Key(claim)) })},
	}
}

// fillStores copies what the informers have into the stores before any key is reconciled.
func (b *binder) fillStores() {
	for _, volume := range list[*v1.PersistentVolume](b.volumeInformer) {
		b.volumes.update(volume)
	}
	for _, claim := range list[*v1.PersistentVolumeClaim](b.claimInformer) {
		b.claims.update(claim)
	}
}

func (b *binder) reconcileClaim(ctx context.Context, key string) error {
	defer resync(b.claimLoop, b.claimInformer, key, binderResync)
	if claim := controller.Lookup[*v1.PersistentVolumeClaim](b.claimInformer, key); claim != nil {
		if !b.claims.update(claim) {
			return nil // the store has a newer version, whose event is to come
		}
		return b.syncClaim(ctx, claim)
	}
	if last, known := b.claims.take(key); known && last.Spec.VolumeName != "" {
		b.volumeLoop.Enqueue(last.Spec.VolumeName)
	}
	return nil
}

func (b *binder) reconcileVolume(ctx context.Context, name string) error {
	defer resync(b.volumeLoop, b.volumeInformer, name, binderResync)
	if volume := controller.Lookup[*v1.PersistentVolume](b.volumeInformer, name); volume != nil {
		if !b.volumes.update(volume) {
			return nil // the store has a newer version, whose event is to come
		}
		return b.syncVolume(ctx, volume)
	}
	if last, known := b.volumes.take(name); known && last.Spec.ClaimRef != nil {
		b.claimLoop.Enqueue(controller.ClaimKey(last))
	}
	return nil
}

func capacityOf(volume *v1.PersistentVolume) *resource.Quantity {
	return volume.Spec.Capacity.Storage()
}

func sizeOf(claim *v1.PersistentVolumeClaim) *resource.Quantity {
	return claim.Spec.Resources.Requests.Storage()
}
