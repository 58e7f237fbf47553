package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// bySource indexes the claims that wait for their clone by the key of the source claim.
const bySource = "source"

// Clones adds and removes the finalizer of source claims.
type Clones struct {
	client     kubernetes.Interface
	claims     cache.SharedIndexInformer
	versions   *controller.Versions
	writer     *controller.Writer
	reporter   *controller.Reporter
	loop       *controller.Loop
	protection sourceProtection[*v1.PersistentVolumeClaim]
	tracking   tracking
}

// NewClones returns the controller and adds its index to the informer of claims. The informer
// must contain the source claims and the claims that wait for their clone, of any driver,
// with finalizers, deletion timestamp, data source and phase.
func NewClones(client kubernetes.Interface, claims cache.SharedIndexInformer,
	reporter *controller.Reporter) (*Clones, error) {
	versions := controller.NewVersions()
	c := &Clones{client: client, claims: claims, versions: versions, writer: controller.NewWriter(client, versions),
		reporter: reporter}
	c.protection = sourceProtection[*v1.PersistentVolumeClaim]{Kind: "source claim", Finalizer: finalizer.CloneSource,
		Read: c.read, Edit: c.edit}
	c.loop = controller.NewLoop("cloningprotection", controller.Backoff{Initial: 20 * time.Millisecond, Max: time.Minute},
		c.Reconcile)
	if err := claims.AddIndexers(cache.Indexers{bySource: controller.NeededSourceIndex(storage.SourceClaim)}); err != nil {
		return nil, fmt.Errorf("index claims by their source: %w", err)
	}
	return c, nil
}

// Watch registers the event handler, and returns once every source claim is enqueued whose
// finalizer may be removed.
func (c *Clones) Watch(ctx context.Context) error {
	return controller.RegisterHandlers(ctx, controller.EventHandler{Informer: c.claims,
		Handler: controller.OnChange(c.onChange, c.onDelete)})
}

// Run reconciles source claims with that many workers until the context ends. Watch has
// succeeded.
func (c *Clones) Run(ctx context.Context, workers int) {
	c.versions.RequeueUnseen(ctx, c.claims, c.loop.Enqueue)
	c.loop.Run(ctx, workers)
}

// AwaitRemoval waits while the finalizer of the source namespace/name is being removed.
func (c *Clones) AwaitRemoval(source string) { c.protection.AwaitRemoval(source) }

// Protect adds the finalizer to a claim that is about to be cloned. It returns an error if
// the claim is gone, or is being deleted without the finalizer.
func (c *Clones) Protect(ctx context.Context, source *v1.PersistentVolumeClaim) error {
	return c.protection.Protect(ctx, source)
}

func (c *Clones) read(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error) {
	return c.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (c *Clones) edit(ctx context.Context, claim *v1.PersistentVolumeClaim,
	change finalizer.Change) (*v1.PersistentVolumeClaim, error) {
	return c.writer.PatchClaim(ctx, claim, finalizer.Edit(patch.For(claim), claim, change))
}

// Reconcile removes the finalizer of one claim if no clone needs the claim.
func (c *Clones) Reconcile(ctx context.Context, key string) error {
	defer c.protection.LockRemoval(key)()
	claim := controller.Lookup[*v1.PersistentVolumeClaim](c.claims, key)
	switch {
	case claim == nil:
		return nil
	case !c.versions.IsFresh(claim):
		return c.versions.AwaitClaim(ctx, c.client, claim)
	}
	clones, err := c.claims.GetIndexer().IndexKeys(bySource, key)
	if err != nil {
		return fmt.Errorf("find clones of claim %s: %w", key, err)
	}
	state := protection.CloneSourceState{
		Deleting:  claim.DeletionTimestamp != nil,
		Protected: finalizer.Has(claim.Finalizers, finalizer.CloneSource),
		Needed:    len(clones) > 0,
	}
	c.trackWait(claim, state)
	if !protection.IsUnneededCloneSource(state) {
		return nil
	}
	klog.FromContext(ctx).V(2).Info("No clone needs the claim, removing the finalizer")
	err = c.protection.Remove(ctx, claim)
	if errors.Is(err, controller.ErrGone) {
		return nil
	}
	return c.reporter.ReportRefusal(claim, c.protection.Removal(), err)
}

// onChange enqueues a protected claim that is being deleted, and the source that the claim
// no longer needs.
func (c *Clones) onChange(old, claim *v1.PersistentVolumeClaim) {
	switch {
	case !finalizer.Has(claim.Finalizers, finalizer.CloneSource):
		c.tracking.waiting.Clear(claim.UID, finalizer.CloneSource)
	case claim.DeletionTimestamp != nil:
		c.loop.Enqueue(controller.Key(claim))
	}
	if old != nil && protection.NeededSource(old) != protection.NeededSource(claim) {
		c.enqueueSource(protection.NeededSource(old))
	}
}

// onDelete also gets a claim of another provisioner that leaves the cache because it is bound:
// it needed its source until now.
func (c *Clones) onDelete(claim *v1.PersistentVolumeClaim) {
	c.versions.Forget(claim.UID)
	c.reporter.Forget(claim.UID)
	c.tracking.waiting.Forget(claim.UID)
	c.enqueueSource(protection.SourceOf(claim))
}

// enqueueSource enqueues the source of a claim.
func (c *Clones) enqueueSource(source storage.DataSource) {
	if source.Kind == storage.SourceClaim {
		c.loop.Enqueue(source.Namespace + "/" + source.Name)
	}
}

// tracking has users told about source claims whose deletion waits.
type tracking struct {
	waiting *waiting.Tracker
	// serves reports whether this process creates the volume of the claim: every provisioner
	// caches the clones of all drivers.
	serves func(claim *v1.PersistentVolumeClaim) bool
}

// TrackWaiting has the tracker told about source claims whose deletion waits for clones that
// this process serves. It is called before Watch.
func (c *Clones) TrackWaiting(tracker *waiting.Tracker, serves func(claim *v1.PersistentVolumeClaim) bool) {
	c.tracking = tracking{tracker, serves}
}

// trackWait tracks the claim if its deletion waits for a clone that this process serves.
func (c *Clones) trackWait(claim *v1.PersistentVolumeClaim, state protection.CloneSourceState) {
	_, waits := c.cloneRunning(claim)
	if !waits || !state.Deleting || !state.Protected {
		c.tracking.waiting.Clear(claim.UID, finalizer.CloneSource)
		return
	}
	c.tracking.waiting.Wait(waiting.Deletion{
		Object: waiting.ClaimReference(claim), Finalizer: finalizer.CloneSource,
		Since: waiting.ClaimSince(claim), Reason: blocker.CloneRunning,
		Blocker: func() (blocker.Blocker, bool) { return c.cloneRunning(claim) },
		Exists: func() bool {
			now := controller.Lookup[*v1.PersistentVolumeClaim](c.claims, controller.Key(claim))
			return now != nil && now.UID == claim.UID
		},
	})
}

// cloneRunning returns a clone that the deletion of the claim waits for, or false if this
// process serves none.
func (c *Clones) cloneRunning(claim *v1.PersistentVolumeClaim) (blocker.Blocker, bool) {
	keys, err := c.claims.GetIndexer().IndexKeys(bySource, controller.Key(claim))
	if err != nil || c.tracking.serves == nil {
		return blocker.Blocker{}, false
	}
	slices.Sort(keys)
	for _, key := range keys {
		clone := controller.Lookup[*v1.PersistentVolumeClaim](c.claims, key)
		if clone == nil || !c.tracking.serves(clone) {
			continue
		}
		return blocker.Blocker{
			Object: blocker.Object{Kind: "PersistentVolumeClaim", Namespace: clone.Namespace, Name: clone.Name,
				UID: string(clone.UID)},
			Finalizer: string(finalizer.CloneSource), Reason: blocker.CloneRunning, Verdict: blocker.Waiting,
			Holder: "PersistentVolumeClaim " + key + ", which is cloned from the claim",
			Next:   fmt.Sprintf("kubectl describe pvc %s -n %s", clone.Name, clone.Namespace),
		}, true
	}
	return blocker.Blocker{}, false
}
