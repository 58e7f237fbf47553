package journalctl

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// await waits until the provisioner takes over an entry with a requested finish.
func (r Resolver) await(ctx context.Context, item entryItem) error {
	refusal, gone := "", false // no provisioner deletes the Lease
	deleted := func(store cache.Store) (bool, error) {
		_, there, err := store.GetByKey(item.Lease.String())
		gone = err == nil && !there
		return gone, err
	}
	_, err := watchtools.UntilWithSync(ctx, r.leaseSource(item.Lease), &coordinationv1.Lease{}, deleted,
		func(event watch.Event) (bool, error) {
			lease, is := event.Object.(*coordinationv1.Lease)
			switch {
			case !is || lease.Name != item.Lease.Name:
				return false, nil
			case event.Type == watch.Deleted:
				gone = true
				return true, nil
			case isOlder(lease, item.version): // from a cache that has not seen the patch yet
				return false, nil
			}
			text, there := journal.Encoded(lease)[item.ClaimUID]
			if entry, err := journal.Decode(item.ClaimUID, text); there && err == nil && entry.Unresolved != nil &&
				!entry.Unresolved.Finish {
				refusal = entry.Unresolved.Reason
				return true, nil
			}
			return !there, nil
		})
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fmt.Errorf("no provisioner of %s has taken the entry of claim UID %s within %v; the request to finish the entry stays in the Lease, and the next leader acts on it: see kubectl get leases and the provisioner's log in namespace %s", item.Driver, item.ClaimUID, r.Timeout, item.Lease.Namespace)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("watch Lease %s: %w", item.Lease, err)
	case gone:
		return fmt.Errorf("lease %s was deleted before the provisioner of %s was seen to take the entry of claim UID %s: unless the list command still shows the entry, look for volume %s in the storage system", item.Lease, item.Driver, item.ClaimUID, item.Volume)
	case refusal != "":
		return fmt.Errorf("the provisioner of %s could not finish the entry of claim UID %s, which is unresolved again: %s", item.Driver, item.ClaimUID, refusal)
	}
	r.print("The provisioner of %s has taken the entry of claim UID %s.", item.Driver, item.ClaimUID)
	return nil
}

// isOlder reports whether the Lease is older than the version. It is not if they cannot be compared.
func isOlder(lease *coordinationv1.Lease, version string) bool {
	order, err := resourceversion.CompareResourceVersion(lease.ResourceVersion, version)
	return err == nil && order < 0
}

// leaseSource lists and watches one Lease.
func (r Resolver) leaseSource(lease reference) cache.ListerWatcher {
	leases := r.Client.CoordinationV1().Leases(lease.Namespace)
	selected := fields.OneTermEqualSelector(metav1.ObjectNameField, lease.Name).String()
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selected
			return leases.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selected
			return leases.Watch(ctx, options)
		},
	}, r.Client)
}
