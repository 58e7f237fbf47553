package leader

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// watchLease adds an entry to released whenever the lease is released or deleted, until
// the context ends. It records each version that the watch shows.
func (e *election) watchLease(ctx context.Context, client kubernetes.Interface) {
	notify := func() {
		select {
		case e.released <- struct{}{}:
		default:
		}
	}
	byName := fields.OneTermEqualSelector("metadata.name", e.ResourceName).String()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(e.ResourceNamespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.FieldSelector = byName }))
	informer := factory.Coordination().V1().Leases().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: e.see,
		UpdateFunc: func(before, after any) {
			e.see(after)
			if isHeld(before) && !isHeld(after) {
				notify()
			}
		},
		DeleteFunc: func(any) { notify() },
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Watching the lease failed, requesting it every retry period")
		return
	}
	informer.RunWithContext(ctx)
}

func (e *election) see(object any) {
	if lease, ok := object.(*coordinationv1.Lease); ok {
		e.term.see(lease)
	}
}

func isHeld(object any) bool {
	lease, ok := object.(*coordinationv1.Lease)
	return ok && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != ""
}
