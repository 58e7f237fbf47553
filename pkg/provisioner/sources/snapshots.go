package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// bySnapshot indexes the claims that wait for their volume by the key of the snapshot.
const bySnapshot = "snapshot"

// SnapshotConfig is what Snapshots works with.
type SnapshotConfig struct {
	Client kubernetes.Interface
	// Metadata reads and patches the metadata of snapshots. REST is a client of their API
	// group and version; it updates snapshots where patches are forbidden.
	Metadata metadata.Interface
	REST     rest.Interface
	Recorder record.EventRecorder
	// Claims must contain data source and phase.
	Claims cache.SharedIndexInformer
	// Interval is the time between two sweeps, 0 for no sweeps.
	Interval time.Duration
	// Waiting tracks the snapshots whose deletion waits for claims for which Serves is true;
	// both are nil for no events and metrics.
	Waiting *waiting.Tracker
	Serves  func(claim *v1.PersistentVolumeClaim) bool
	// Elsewhere reports whether another process serves the claim, whose events are left to that
	// process and to the sweep; nil for no such claim. Else each process would list the claims of
	// the namespace.
	Elsewhere func(claim *v1.PersistentVolumeClaim) bool
}

// Snapshots adds and removes the finalizer of snapshots.
type Snapshots struct {
	SnapshotConfig
	loop         *controller.Loop
	protection   sourceProtection[metav1.Object]
	updates      *controller.UpdateFallback
	reporter     *controller.Reporter
	logForbidden sync.Once
	// tracked are the snapshots of the last sweep whose deletion waits.
	tracked map[types.UID]bool
}

// NewSnapshots returns the controller and adds its index to the informer of claims.
func NewSnapshots(config SnapshotConfig) (*Snapshots, error) {
	c := &Snapshots{SnapshotConfig: config, updates: controller.NewUpdateFallback(config.REST,
		SnapshotResource.GroupResource()), reporter: controller.NewReporter(config.Recorder)}
	c.protection = sourceProtection[metav1.Object]{Kind: "snapshot", Finalizer: finalizer.SnapshotSource,
		Read: c.readSource, Edit: c.edit}
	c.loop = controller.NewLoop("snapshotprotection", controller.Backoff{Initial: 100 * time.Millisecond,
		Max: 5 * time.Minute}, c.Reconcile)
	if err := c.Claims.AddIndexers(cache.Indexers{bySnapshot: controller.NeededSourceIndex(storage.SourceSnapshot)}); err != nil {
		return nil, fmt.Errorf("index claims by snapshot: %w", err)
	}
	return c, nil
}

// Watch registers the event handler. The first sweep finds the snapshots whose claim was
// deleted while no process led.
func (c *Snapshots) Watch(ctx context.Context) error {
	onChange := func(old, now *v1.PersistentVolumeClaim) {
		if old != nil && protection.NeededSource(old) != protection.NeededSource(now) {
			c.enqueueSnapshot(now, protection.NeededSource(old))
		}
	}
	onDelete := func(claim *v1.PersistentVolumeClaim) { c.enqueueSnapshot(claim, protection.SourceOf(claim)) }
	return controller.RegisterHandlers(ctx, controller.EventHandler{Informer: c.Claims,
		Handler: controller.OnChange(onChange, onDelete)})
}

// Run reconciles and sweeps snapshots until the context ends. Watch has succeeded.
func (c *Snapshots) Run(ctx context.Context) {
	if c.Interval > 0 {
		go c.sweepEveryInterval(ctx)
	}
	c.loop.Run(ctx, 1)
}

// enqueueSnapshot enqueues the source of a claim if it is a snapshot.
func (c *Snapshots) enqueueSnapshot(claim *v1.PersistentVolumeClaim, source storage.DataSource) {
	if source.Kind == storage.SourceSnapshot && (c.Elsewhere == nil || !c.Elsewhere(claim)) {
		c.loop.Enqueue(source.Namespace + "/" + source.Name)
	}
}

// Reconcile removes the finalizer of one snapshot if no claim needs the snapshot.
func (c *Snapshots) Reconcile(ctx context.Context, key string) error {
	defer c.protection.LockRemoval(key)()
	needed, err := c.Claims.GetIndexer().IndexKeys(bySnapshot, key)
	if err != nil {
		return fmt.Errorf("find claims that need snapshot %s: %w", key, err)
	}
	state := protection.SnapshotState{Protected: true, Needed: len(needed) > 0}
	if protection.DecideSnapshot(state) == protection.KeepSnapshot { // spares the live read
		return nil
	}
	snapshot, err := c.read(ctx, key)
	if err != nil || snapshot == nil {
		return err
	}
	state.Protected = finalizer.Has(snapshot.Finalizers, finalizer.SnapshotSource)
	action := protection.DecideSnapshot(state)
	if action == protection.ConfirmSnapshot {
		if state.Needed, err = c.isNeeded(ctx, snapshot); err != nil {
			return err
		}
		state.Confirmed = true
		if state.Needed { // by a claim that the cache lacks, so that no event of the claim may follow
			return controller.ErrStaleCache
		}
		action = protection.DecideSnapshot(state)
	}
	if action != protection.UnprotectSnapshot {
		return nil
	}
	return c.unprotect(ctx, snapshot)
}

// read returns the metadata of a snapshot, nil if the snapshot is gone.
func (c *Snapshots) read(ctx context.Context, key string) (*metav1.PartialObjectMetadata, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil { // a claim may name a source with a slash, which no snapshot has
		return nil, nil
	}
	snapshot, err := c.get(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err), c.isForbidden(ctx, err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read snapshot %s: %w", key, err)
	}
	return snapshot, nil
}

func (c *Snapshots) get(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	return c.Metadata.Resource(SnapshotResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// isNeeded reports whether a claim waits for a volume from the snapshot, by a live list of
// the claims in its namespace. Claims of other namespaces can use the snapshot only with a
// feature gate; for them the cache decides.
func (c *Snapshots) isNeeded(ctx context.Context, snapshot metav1.Object) (bool, error) {
	claims, err := answer.CheckedList(c.Client.CoreV1().PersistentVolumeClaims(snapshot.GetNamespace()).
		List(ctx, metav1.ListOptions{}))
	if err != nil {
		return false, fmt.Errorf("list claims in namespace %s: %w", snapshot.GetNamespace(), err)
	}
	wanted := storage.DataSource{Kind: storage.SourceSnapshot, Namespace: snapshot.GetNamespace(),
		Name: snapshot.GetName()}
	for i := range claims.Items {
		if protection.NeededSource(&claims.Items[i]) == wanted {
			return true, nil
		}
	}
	return false, nil
}

func (c *Snapshots) unprotect(ctx context.Context, snapshot *metav1.PartialObjectMetadata) error {
	err := c.protection.Remove(ctx, snapshot)
	switch {
	case errors.Is(err, controller.ErrGone):
		c.reporter.Forget(snapshot.UID)
		return nil
	case c.mayNotWrite(ctx, snapshot.Namespace, err):
		c.warn(snapshot, "The finalizer "+string(finalizer.SnapshotSource)+
			" stays on the snapshot, although no volume is restored from the snapshot any more: the provisioner may neither patch nor update volumesnapshots")
		return nil
	case err != nil:
		typed := snapshot.DeepCopy() // the scheme of events lacks snapshots
		typed.TypeMeta = metav1.TypeMeta{APIVersion: SnapshotResource.GroupVersion().String(), Kind: "VolumeSnapshot"}
		return c.reporter.ReportRefusal(typed, c.protection.Removal(), err)
	}
	c.reporter.Forget(snapshot.UID)
	c.Waiting.Forget(snapshot.UID)
	klog.FromContext(ctx).V(2).Info("No claim needs the snapshot, removing the finalizer")
	return nil
}

// page is the number of snapshots in one list request.
const page = 500

func (c *Snapshots) sweepEveryInterval(ctx context.Context) {
	ticker := time.NewTicker(c.Interval)
	defer ticker.Stop()
	for {
		if err := c.Sweep(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Sweep of orphaned snapshot finalizers failed, retrying", "interval", c.Interval)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Sweep enqueues every snapshot with the finalizer. A cluster without the resource has no
// snapshots.
func (c *Snapshots) Sweep(ctx context.Context) error {
	options, tracked := metav1.ListOptions{Limit: page}, map[types.UID]bool{}
	for {
		list, err := c.Metadata.Resource(SnapshotResource).List(ctx, options)
		switch {
		case apierrors.IsNotFound(err), c.isForbidden(ctx, err):
			c.alsoTrack(tracked)
			c.forgetUnswept(nil) // nothing shows any more that they wait
			return nil
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			c.alsoTrack(tracked)
			return nil // the next sweep starts from the beginning
		case err != nil:
			c.alsoTrack(tracked)
			return fmt.Errorf("list snapshots: %w", err)
		}
		for i := range list.Items {
			if finalizer.Has(list.Items[i].Finalizers, finalizer.SnapshotSource) {
				c.loop.Enqueue(controller.Key(&list.Items[i]))
				if c.trackSwept(&list.Items[i]) {
					tracked[list.Items[i].UID] = true
				}
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			c.forgetUnswept(tracked)
			return nil
		}
	}
}

// trackSwept tracks a snapshot of a sweep whose deletion waits for a claim that this process
// serves. Only sweeps see which snapshots are being deleted. It returns whether it waits.
func (c *Snapshots) trackSwept(snapshot metav1.Object) bool {
	if _, waits := c.snapshotRunning(controller.Key(snapshot)); !waits || snapshot.GetDeletionTimestamp() == nil {
		return false
	}
	key := controller.Key(snapshot)
	c.Waiting.Wait(waiting.Deletion{
		Object: referenceTo(snapshot), Finalizer: finalizer.SnapshotSource,
		Since: deadline.Of(snapshot).Requested(), Reason: blocker.SnapshotRunning,
		Blocker: func() (blocker.Blocker, bool) { return c.snapshotRunning(key) },
	})
	return true
}

// forgetUnswept drops the tracked snapshots that the last sweep did not find.
func (c *Snapshots) forgetUnswept(found map[types.UID]bool) {
	for snapshot := range c.tracked {
		if !found[snapshot] {
			c.Waiting.Forget(snapshot)
		}
	}
	c.tracked = found
}

// alsoTrack adds snapshots that a sweep found before it failed: the next complete sweep forgets
// those that are gone.
func (c *Snapshots) alsoTrack(found map[types.UID]bool) {
	if c.tracked == nil {
		c.tracked = map[types.UID]bool{}
	}
	maps.Copy(c.tracked, found)
}

// snapshotRunning returns a claim that the deletion of the snapshot waits for, or false if
// this process serves none.
func (c *Snapshots) snapshotRunning(snapshot string) (blocker.Blocker, bool) {
	keys, err := c.Claims.GetIndexer().IndexKeys(bySnapshot, snapshot)
	if err != nil || c.Serves == nil {
		return blocker.Blocker{}, false
	}
	slices.Sort(keys)
	for _, key := range keys {
		claim := controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, key)
		if claim == nil || !c.Serves(claim) {
			continue
		}
		return blocker.Blocker{
			Object: blocker.Object{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name,
				UID: string(claim.UID)},
			Finalizer: string(finalizer.SnapshotSource), Reason: blocker.SnapshotRunning, Verdict: blocker.Waiting,
			Holder: "PersistentVolumeClaim " + key + ", which is restored from the snapshot",
			Next:   fmt.Sprintf("kubectl describe pvc %s -n %s", claim.Name, claim.Namespace),
		}, true
	}
	return blocker.Blocker{}, false
}
