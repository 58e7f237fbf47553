package cloning

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/provisioner/sources"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// bySource indexes the claims that wait for their clone by the key of the source claim.
const bySource = "source"

// Controller adds and removes the finalizer of source claims.
type Controller struct {
	client     kubernetes.Interface
	claims     cache.SharedIndexInformer
	versions   *controller.Versions
	writer     *controller.Writer
	reporter   *controller.Reporter
	loop       *controller.Loop
	protection sources.Protection[*v1.PersistentVolumeClaim]
	tracking   tracking
}

// New returns the controller and adds its index to the informer of claims. The informer
// must contain the source claims and the claims that wait for their clone, of any driver,
// with finalizers, deletion timestamp, data source and phase.
func New(client kubernetes.Interface, claims cache.SharedIndexInformer, reporter *controller.Reporter) (*Controller, error) {
	versions := controller.NewVersions()
	c := &Controller{client: client, claims: claims, versions: versions, writer: controller.NewWriter(client, versions), reporter: reporter}
	c.protection = sources.Protection[*v1.PersistentVolumeClaim]{Kind: "source claim", Finalizer: finalizer.CloneSource, Read: c.read, Edit: c.edit}
	c.loop = controller.NewLoop("cloningprotection", controller.Backoff{Initial: 20 * time.Millisecond, Max: time.Minute}, c.Reconcile)
	if err := claims.AddIndexers(cache.Indexers{bySource: controller.NeededSourceIndex(storage.SourceClaim)}); err != nil {
		return nil, fmt.Errorf("index claims by their source: %w", err)
	}
	return c, nil
}

// Watch registers the event handler, and returns once every source claim is enqueued whose
// finalizer may be removed.
func (c *Controller) Watch(ctx context.Context) error {
	return controller.RegisterHandlers(ctx, controller.EventHandler{Informer: c.claims, Handler: controller.OnChange(c.onChange, c.onDelete)})
}

// Run reconciles source claims with that many workers until the context ends. Watch has
// succeeded.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.loop.Run(ctx, workers)
}

// AwaitRemoval waits while the finalizer of the source namespace/name is being removed.
func (c *Controller) AwaitRemoval(source string) { c.protection.AwaitRemoval(source) }

// Protect adds the finalizer to a claim that is about to be cloned. It returns an error if
// the claim is gone, or is being deleted without the finalizer.
func (c *Controller) Protect(ctx context.Context, source *v1.PersistentVolumeClaim) error {
	return c.protection.Protect(ctx, source)
}

func (c *Controller) read(ctx context.Context, namespace, name string) (*v1.PersistentVolumeClaim, error) {
	return c.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (c *Controller) edit(ctx context.Context, claim *v1.PersistentVolumeClaim, change finalizer.Change) (*v1.PersistentVolumeClaim, error) {
	return c.writer.PatchClaim(ctx, claim, finalizer.Edit(patch.For(claim), claim, change))
}

// Reconcile removes the finalizer of one claim if no clone needs the claim.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
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
func (c *Controller) onChange(old, claim *v1.PersistentVolumeClaim) {
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
func (c *Controller) onDelete(claim *v1.PersistentVolumeClaim) {
	c.versions.Forget(claim.UID)
	c.reporter.Forget(claim.UID)
	c.tracking.waiting.Forget(claim.UID)
	c.enqueueSource(protection.SourceOf(claim))
}

// enqueueSource enqueues the source of a claim.
func (c *Controller) enqueueSource(source storage.DataSource) {
	if source.Kind == storage.SourceClaim {
		c.loop.Enqueue(source.Namespace + "/" + source.Name)
	}
}
