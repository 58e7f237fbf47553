package provisioning

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// Deletion is the volume side.
type Deletion interface {
	// HandleOf returns the volume's handle, "" if the volume is not the driver's.
	HandleOf(volume *v1.PersistentVolume) string
	// SameDisk reports whether two volumes have one disk.
	SameDisk(a, b *v1.PersistentVolume) bool
	// Naming returns the names of the PersistentVolumes that have the volume's disk.
	Naming(volume *v1.PersistentVolume) []string
	// Discard deletes the disk that no PersistentVolume records, by the handle that the
	// driver returned.
	Discard(ctx context.Context, volume *v1.PersistentVolume, handle string) error
}

// Timeouts bounds how long an unclear volume is waited for.
type Timeouts struct {
	// Unresolved is how long the request for a claim that is gone is repeated though only
	// an administrator can find out about its volume.
	Unresolved time.Duration
	// Denial is the time between two failures of the driver that count, if an earlier call
	// was open.
	RepeatedFailure time.Duration
	// Rescan is when the journal is read again: a Lease that the leader before was still
	// creating appears until then.
	Rescan time.Duration
	// Unseen is how long a PersistentVolume that this process wrote may be missing in the
	// cache until it counts as gone.
	Unseen time.Duration
}

// DefaultTimeouts is what journal entries are worked on with by default.
var DefaultTimeouts = Timeouts{Unresolved: time.Hour, RepeatedFailure: 10 * time.Minute, Rescan: time.Minute, Unseen: time.Minute}

// Config is what the reconciler works with.
type Config struct {
	Client kubernetes.Interface
	// Claims, Volumes and Classes are those of the cluster.
	Claims, Volumes, Classes cache.SharedIndexInformer
	// Attributes are the VolumeAttributesClasses of the cluster, nil if it has none.
	Attributes cache.SharedIndexInformer
	// Backend creates the volumes.
	Backend  backend.Backend
	Deletion Deletion
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// DiscardRefused: a created volume is discarded if the API server refuses its
	// PersistentVolume as invalid. Otherwise the PersistentVolume is written again.
	DiscardRefused bool
	// Streamed reports whether a claim of that version came by a watch, and not by a
	// list; nil if that is not known.
	Streamed func(version string) bool
	// Serves reports whether classes and volumes of the provisioner are served here: the
	// driver's, and those of the in-tree plugin that it replaces.
	Serves func(provisioner string) bool
	// ServedBy returns who serves a claim; nil if this process serves all of them.
	ServedBy func(claim *v1.PersistentVolumeClaim) provision.Server
	// Node reads a selected node live.
	Node func(ctx context.Context, name string) (*v1.Node, error)
	// WatchedNode returns a selected node from the cache, nil if it is not there; nil if
	// no nodes are watched.
	WatchedNode func(name string) *v1.Node
	// Failed gets the class of each volume that the driver failed to create; it may be
	// nil.
	Failed func(class string)
	// VolumeName returns the name of a claim's volume.
	VolumeName func(claim *v1.PersistentVolumeClaim) string
	// Locks are shared with the deletion loop: one worker at a time per volume name.
	Locks    *controller.KeyLocks
	Reporter *controller.Reporter
	Metrics  metrics.Metrics
	// Backoff bounds the time between two tries for a claim.
	Backoff controller.Backoff
	// Journal has the entries of earlier processes, too; nil for none at all.
	Journal Journal
	// Journaled is the gate ProvisioningJournal: calls need a durable entry.
	Journaled bool
	// Bypassed is called for each volume that is created without an entry, with the
	// reason; it may be nil.
	Bypassed func(reason string)
	// Leading reports whether the lease is valid for longer than a call takes to begin;
	// nil without leader election.
	Leading  func() bool
	Timeouts Timeouts
}

// Controller creates volumes for claims.
type Controller struct {
	Config
	versions *controller.Versions
	writer   *controller.Writer
	memory   *memory
	loop     *controller.Loop
	// journaled: calls need a durable entry.
	journaled atomic.Bool
}

// New returns the reconciler and adds its indexes to the caches.
func New(config Config) (*Controller, error) {
	versions := controller.NewVersions()
	if config.Timeouts == (Timeouts{}) {
		config.Timeouts = DefaultTimeouts
	}
	c := &Controller{Config: config, versions: versions, writer: controller.NewWriter(config.Client, versions), memory: newMemory()}
	c.journaled.Store(config.Journaled && config.Journal != nil)
	c.loop = controller.NewLoop("claims", config.Backoff, c.Reconcile)
	if err := c.addIndexes(); err != nil {
		return nil, fmt.Errorf("index claims by class: %w", err)
	}
	return c, nil
}

// Run creates volumes with so many workers until the context ends. Watch and Start
// have succeeded.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.loop.Run(ctx, workers)
}

// Reconcile observes one claim and its volume and takes step after step until there
// is nothing left to do but wait.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	claim, _ := c.claimOf(key)
	if claim == nil {
		return nil
	}
	defer c.Locks.Lock(c.VolumeName(claim))()
	o, err := c.observe(key)
	for steps := new(controller.StepCounter); err == nil && o != nil; {
		state := c.stateOf(o)
		decision := provision.Decide(state)
		if decision.Action == provision.Wait {
			return c.wait(o, state, decision.Reason)
		}
		klog.FromContext(ctx).V(4).Info("Decided on claim", "action", decision.Action, "reason", decision.Reason, "volume", o.name)
		if err = steps.Next(); err == nil {
			o, err = c.execute(ctx, o, state, decision)
		}
	}
	return err
}
