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

// Deletion is the part of the deletion loop that the claim loop calls.
type Deletion interface {
	// HandleOf returns the volume's handle, "" for a volume of another driver.
	HandleOf(volume *v1.PersistentVolume) string
	// SameDisk reports whether two volumes have one disk.
	SameDisk(a, b *v1.PersistentVolume) bool
	// VolumesOnDisk returns the names of the cached PersistentVolumes with the volume's disk.
	VolumesOnDisk(volume *v1.PersistentVolume) []string
	// DeletedWith reports whether the deletion of the volume's disk deletes that of the other one.
	DeletedWith(volume, other *v1.PersistentVolume) bool
	// VolumesDeletedWith returns the names of the cached PersistentVolumes whose disks are deleted with
	// that of the volume.
	VolumesDeletedWith(volume *v1.PersistentVolume) []string
	// PrepareDiscard returns the call that deletes a disk without a PersistentVolume, by the
	// handle from the driver's response.
	PrepareDiscard(ctx context.Context, volume *v1.PersistentVolume, handle string) (backend.DeleteCall, error)
}

// Scope is what this process provisions.
type Scope interface {
	// Serves reports whether the provisioner name is the driver or an in-tree plugin that the driver
	// replaces.
	Serves(provisioner string) bool
	// Node is the node whose claims this process serves, "" if it serves the claims of all nodes.
	Node() string
	// Reaches reports whether the storage of this process may have the disk of a PersistentVolume:
	// with a process on each node it may be in the storage of another one.
	Reaches(volume *v1.PersistentVolume) bool
	// VolumeName returns the name of a claim's volume.
	VolumeName(claim *v1.PersistentVolumeClaim) string
}

// Nodes are the nodes that the scheduler selects.
type Nodes interface {
	// Read reads a node live.
	Read(ctx context.Context, name string) (*v1.Node, error)
	// FromCache returns a cached node, nil if the cache lacks the node or there is no cache.
	FromCache(name string) *v1.Node
}

// Caches are the informers of the driver's objects.
type Caches struct {
	Claims, Volumes, Classes cache.SharedIndexInformer
	// Attributes are the VolumeAttributesClasses of the cluster, nil if it has none.
	Attributes cache.SharedIndexInformer
	// Arrivals tell how claims came into the cache; the zero value for unknown.
	Arrivals
}

// Timeouts are the waiting times of requests with an unknown outcome.
type Timeouts struct {
	// Unresolved bounds the time for repeated requests of a deleted claim, if only an
	// administrator can find out whether the volume exists.
	Unresolved time.Duration
	// RepeatedFailure is the time between two failures. The second failure proves that no
	// volume exists, even if the outcome of an earlier call is unknown.
	RepeatedFailure time.Duration
	// Rescan is the time until the second read of the journal. It finds a Lease that the
	// previous leader created after the first read.
	Rescan time.Duration
	// Unseen is the time until a PersistentVolume counts as gone if this process wrote it
	// and the cache does not have it.
	Unseen time.Duration
	// OpenWrite is how long the API server may take to execute a write of a PersistentVolume whose
	// answer is lost: its --request-timeout, one minute unless changed, and some time for the arrival
	// of the request and the commit of etcd.
	OpenWrite time.Duration
}

// DefaultTimeouts are the timeouts of a Config without timeouts.
var DefaultTimeouts = Timeouts{
	Unresolved: time.Hour, RepeatedFailure: 10 * time.Minute,
	Rescan: time.Minute, Unseen: time.Minute, OpenWrite: 70 * time.Second,
}

// Config configures the controller.
type Config struct {
	Client kubernetes.Interface
	Caches
	Scope Scope
	Nodes Nodes
	// Backend creates the volumes; Deletion deletes those that are not recorded.
	Backend  backend.Backend
	Deletion Deletion
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
	// DiscardRefused: a created volume is discarded if the API server refuses its PersistentVolume as
	// invalid; a denial by a webhook counts as no such refusal. Otherwise the PersistentVolume is
	// written again.
	DiscardRefused bool
	// Locks are shared with the deletion loop: one worker at a time per volume name.
	Locks    *controller.KeyLocks
	Reporter *controller.Reporter
	Metrics  metrics.Metrics
	// Backoff bounds the time between two retries of a claim.
	Backoff controller.Backoff
	// Journal has the entries of this process and of earlier ones; nil for no journal.
	Journal Journal
	// Journaled is the gate ProvisioningJournal: calls need a durable entry.
	Journaled bool
	// Bypassed is called with the reason for each call without an entry; it may be nil.
	Bypassed func(reason string)
	// Leading reports whether the leader lease is valid long enough to begin a call; nil
	// without leader election.
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
	// It removes the selected node, and the scheduler selects the next one: with pauses a claim left each full node later,
	// the tenth after minutes.
	writer := controller.NewWriter(config.Client, versions).Unpaused()
	c := &Controller{Config: config, versions: versions, writer: writer, memory: newMemory()}
	c.journaled.Store(config.Journaled && config.Journal != nil)
	c.loop = controller.NewLoop("claims", config.Backoff, c.Reconcile)
	if err := c.addIndexes(); err != nil {
		return nil, fmt.Errorf("index claims by class: %w", err)
	}
	return c, nil
}

// Run creates volumes with the number of workers until the context ends. The caller must
// have called Watch and Start successfully.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.versions.RequeueUnseen(ctx, c.Claims, func(claim string) {
		if cached := controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, claim); cached != nil {
			c.loop.Enqueue(keyOf(claim, cached.UID))
		}
	})
	c.loop.Run(ctx, workers)
}

// Loops returns the loops, for a simulation that steps them.
func (c *Controller) Loops() []*controller.Loop { return []*controller.Loop{c.loop} }

// Reconcile observes one claim and its volume, and executes actions until the decision is
// to wait.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	claim, _ := c.claimOf(key)
	if claim == nil {
		return nil
	}
	defer c.Locks.Lock(c.Scope.VolumeName(claim))()
	o, err := c.observe(ctx, key)
	for steps := new(controller.StepCounter); err == nil && o != nil; {
		state := c.stateOf(o)
		decision := provision.Decide(state)
		if decision.Action == provision.Wait {
			return c.wait(o, state, decision.Reason)
		}
		logger := klog.FromContext(ctx).V(4)
		logger.Info("Decided on claim", "action", decision.Action, "reason", decision.Reason, "volume", o.name)
		if err = steps.Next(); err == nil {
			o, err = c.execute(ctx, o, state, decision)
		}
	}
	return err
}
