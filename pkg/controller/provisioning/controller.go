package provisioning

import (
	"context"
	"fmt"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// Deletion is the volume side.
type Deletion interface {
	// HandleOf is what the driver calls the volume, "" if it is not the driver's.
	HandleOf(volume *v1.PersistentVolume) string
	// SameDisk says whether two volumes have one disk.
	SameDisk(a, b *v1.PersistentVolume) bool
	// Naming returns the names of the PersistentVolumes that have the volume's disk.
	Naming(volume *v1.PersistentVolume) []string
	// Discard deletes a volume in the storage system, by what the driver called it, that
	// no PersistentVolume records.
	Discard(ctx context.Context, volume *v1.PersistentVolume, handle string) error
}

// Config is what the reconciler works with.
type Config struct {
	Client kubernetes.Interface
	// Claims, Volumes and Classes are those of the cluster.
	Claims, Volumes, Classes cache.SharedIndexInformer
	// Attributes are the VolumeAttributesClasses of the cluster, nil if it has none.
	Attributes  cache.SharedIndexInformer
	Provisioner *Provisioner
	Deletion    Deletion
	// Streamed says whether a claim of that version came by a watch, as it was written,
	// and not by a list, long after perhaps; nil if that is not known.
	Streamed func(version string) bool
	// Serves says whether classes and volumes of the provisioner are served here: the
	// driver's, and those of the in-tree plugin that it serves.
	Serves func(provisioner string) bool
	// ServedBy says who serves a claim; nil if this process serves all of them.
	ServedBy func(claim *v1.PersistentVolumeClaim) provision.Server
	// Node returns a node that was chosen for a claim.
	Node func(ctx context.Context, name string) (*v1.Node, error)
	// Failed is told the class of each volume that the driver failed to make; it may
	// be nil.
	Failed func(class string)
	// VolumeName is the name of the volume made for a claim.
	VolumeName func(claim *v1.PersistentVolumeClaim) string
	// Turns are shared with the volume side: one worker at a time has a volume.
	Turns    *controller.Turns
	Reporter *controller.Reporter
	Metrics  metrics.Metrics
	// Backoff bounds the time between two tries for a claim.
	Backoff controller.Backoff
	// Holds: claims are held while the driver may be making their volume.
	Holds bool
}

// Controller makes volumes for claims.
type Controller struct {
	Config
	versions *controller.Versions
	writer   *controller.Writer
	memory   *memory
	loop     *controller.Loop
	// started is the version of the API server when this process began to work: what
	// became ours later, no other process was asked for.
	started atomic.Pointer[string]
}

// New returns the reconciler and registers it with the caches.
func New(config Config) (*Controller, error) {
	versions := controller.NewVersions()
	c := &Controller{Config: config, versions: versions, writer: controller.NewWriter(config.Client, versions), memory: newMemory()}
	c.loop = controller.NewLoop("claims", config.Backoff, c.Reconcile).Only(c.exists)
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("watch for provisioning: %w", err)
	}
	return c, nil
}

// Run makes volumes with so many workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) {
	list, err := c.Client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil { // then every claim that is held was perhaps asked for
		klog.FromContext(ctx).Error(err, "Reading the version of the API server failed")
	} else {
		c.started.Store(&list.ResourceVersion)
	}
	c.loop.Run(ctx, workers)
}

// Reconcile observes one claim and its volume and takes step after step until there
// is nothing left to do but wait.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	claim, _ := c.claimOf(key)
	if claim == nil {
		return nil
	}
	defer c.Turns.Take(c.VolumeName(claim))()
	o, err := c.observe(key)
	for err == nil && o != nil {
		state := c.stateOf(o)
		decision := provision.Decide(state)
		if decision.Action == provision.Wait {
			return c.wait(o, state, decision.Reason)
		}
		klog.FromContext(ctx).V(4).Info("Decided on claim", "reason", decision.Reason, "volume", o.name)
		o, err = c.execute(ctx, o, state, decision.Action)
	}
	return err
}

// cached returns the object, nil if there is none, or none of ours.
func cached[T any](informer cache.SharedIndexInformer, key string) T {
	var none T
	object, found, err := informer.GetStore().GetByKey(key)
	if err != nil || !found {
		return none
	}
	ours, ok := object.(T)
	if !ok {
		return none
	}
	return ours
}
