package snapshots

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/exeunt-io/exeunt/pkg/storage"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
)

// bySnapshot finds the claims that wait for a volume made from a snapshot by it.
const bySnapshot = "snapshot"

// Config is what the controller works with.
type Config struct {
	Client kubernetes.Interface
	// Metadata reads and patches the metadata of snapshots. REST, a client of their
	// group and version, updates them where patches are forbidden.
	Metadata metadata.Interface
	REST     rest.Interface
	Recorder record.EventRecorder
	// Claims must keep data source and phase.
	Claims cache.SharedIndexInformer
	// Interval is the time between two sweeps; 0 sweeps never.
	Interval time.Duration
}

// Controller takes the finalizer off again.
type Controller struct {
	Config
	loop    *controller.Loop
	updates *controller.UpdateFallback
	// told: that rights are missing was logged.
	told sync.Once
}

// New returns the controller and registers it with the cache of claims.
func New(config Config) (*Controller, error) {
	c := &Controller{Config: config, updates: controller.NewUpdateFallback(config.REST, Resource.GroupResource())}
	c.loop = controller.NewLoop("snapshotprotection", controller.Backoff{Initial: 100 * time.Millisecond, Max: 5 * time.Minute}, c.Reconcile).Only(unknown)
	if err := c.Claims.AddIndexers(cache.Indexers{bySnapshot: controller.NeededSourceIndex(storage.SourceSnapshot)}); err != nil {
		return nil, fmt.Errorf("index claims by snapshot: %w", err)
	}
	changed := func(old, now *v1.PersistentVolumeClaim) {
		if old != nil && protection.NeededSource(old) != protection.NeededSource(now) {
			c.wake(old)
		}
	}
	if _, err := c.Claims.AddEventHandler(controller.OnChange(changed, c.wake)); err != nil {
		return nil, fmt.Errorf("watch claims for snapshots: %w", err)
	}
	return c, nil
}

// Run reconciles snapshots, and sweeps them, until the context ends.
func (c *Controller) Run(ctx context.Context) {
	if c.Interval > 0 {
		go c.sweepAgainAndAgain(ctx)
	}
	c.loop.Run(ctx, 1)
}

// unknown: nobody here knows whether a snapshot still exists. Who works while this
// process stands by lets go of it; the latest are kept anyway.
func unknown(string) bool { return false }

// wake looks at the snapshot that the claim needed.
func (c *Controller) wake(claim *v1.PersistentVolumeClaim) {
	if source := protection.NeededSource(claim); source.Kind == storage.SourceSnapshot {
		c.loop.Enqueue(source.Namespace + "/" + source.Name)
	}
}

// Reconcile takes the finalizer off one snapshot, or leaves it.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	needed, err := c.Claims.GetIndexer().IndexKeys(bySnapshot, key)
	if err != nil {
		return fmt.Errorf("find claims made from snapshot %s: %w", key, err)
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
		if state.Needed, err = c.neededLive(ctx, snapshot); err != nil {
			return err
		}
		state.Confirmed = true
		if state.Needed { // by a claim that the cache does not know, so that no event may tell when it goes
			return controller.ErrStaleCache
		}
		action = protection.DecideSnapshot(state)
	}
	if action != protection.UnprotectSnapshot {
		return nil
	}
	return c.release(ctx, snapshot)
}

// read returns the metadata of a snapshot, nil if it is gone.
func (c *Controller) read(ctx context.Context, key string) (*metav1.PartialObjectMetadata, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, fmt.Errorf("split key %q: %w", key, err)
	}
	snapshot, err := c.Metadata.Resource(Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), c.missesRights(ctx, err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read snapshot %s: %w", key, err)
	}
	return snapshot, nil
}

// neededLive says whether a claim waits for a volume made from the snapshot.
// Claims of other namespaces count by the cache alone: that they may use the
// snapshot takes a feature gate.
func (c *Controller) neededLive(ctx context.Context, snapshot metav1.Object) (bool, error) {
	claims, err := c.Client.CoreV1().PersistentVolumeClaims(snapshot.GetNamespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list claims in namespace %s: %w", snapshot.GetNamespace(), err)
	}
	wanted := storage.DataSource{Kind: storage.SourceSnapshot, Namespace: snapshot.GetNamespace(), Name: snapshot.GetName()}
	for i := range claims.Items {
		if protection.NeededSource(&claims.Items[i]) == wanted {
			return true, nil
		}
	}
	return false, nil
}

func (c *Controller) release(ctx context.Context, snapshot *metav1.PartialObjectMetadata) error {
	err := c.edit(ctx, snapshot, finalizer.Change{Remove: []finalizer.Name{finalizer.SnapshotSource}})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case c.missesRights(ctx, err):
		c.warn(snapshot, "The finalizer "+string(finalizer.SnapshotSource)+" stays on the snapshot, though no volume is made from it any more: the provisioner may neither patch nor update volumesnapshots")
		return nil
	case err != nil:
		return err
	}
	klog.FromContext(ctx).V(2).Info("No claim waits for a volume made from the snapshot, letting it go")
	return nil
}

// errLeaving: the finalizer cannot be added any more.
var errLeaving = errors.New("it is being deleted")
