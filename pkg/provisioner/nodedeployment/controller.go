package nodedeployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/capacity"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/topology"
)

// byClass indexes the claims without a volume by storage class.
const byClass = "unselected-class"

// Driver reports the capacity of this node.
type Driver interface {
	GetCapacity(ctx context.Context, request *spec.GetCapacityRequest) (*spec.GetCapacityResponse, error)
}

// Config configures the controller.
type Config struct {
	Client          kubernetes.Interface
	Claims, Classes cache.SharedIndexInformer
	Driver          Driver
	// CapacityRequest returns the GetCapacity request for the volume of a claim, without
	// topology. The error [provision.LeftToOther] says that another process serves the claim.
	CapacityRequest func(ctx context.Context, claim *v1.PersistentVolumeClaim,
		class *storagev1.StorageClass) (*spec.GetCapacityRequest, error)
	// ReachesSource reports whether this node reaches the volume that the claim is a clone of; nil for always.
	ReachesSource func(ctx context.Context, claim *v1.PersistentVolumeClaim) (bool, error)
	Reporter      *controller.Reporter
	// Serves reports whether this program serves claims of the provisioner.
	Serves func(provisioner string) bool
	// Node is the name of this node.
	Node string
	// HasTopology: the driver has topology. Topology is then the topology of this node.
	HasTopology bool
	Topology    map[string]string
	// BaseDelay is the longest time until the first attempt for a claim, MaxDelay the
	// longest time between two attempts.
	BaseDelay, MaxDelay time.Duration
}

// Controller selects this node for claims.
type Controller struct {
	Config
	versions *controller.Versions
	writer   *controller.Writer
	loop     *controller.Loop

	mu sync.Mutex
	// attempts counts attempts by key, for claims in the queue only.
	attempts map[string]int
}

// New returns the controller and adds its index to the informer of claims.
func New(config Config) (*Controller, error) {
	config.MaxDelay = cmp.Or(config.MaxDelay, firstRetry) // without a pause the driver would be asked in a loop
	versions := controller.NewVersions()
	// The selected node is removed whenever this node turns out to be full.
	writer := controller.NewWriter(config.Client, versions).Unpaused()
	c := &Controller{Config: config, versions: versions, writer: writer, attempts: map[string]int{}}
	c.loop = controller.NewLoop("nodedeployment",
		controller.Backoff{Initial: min(max(config.BaseDelay, firstBackoff), config.MaxDelay), Max: config.MaxDelay},
		c.Reconcile)
	if err := c.Claims.AddIndexers(cache.Indexers{byClass: classWithoutVolume}); err != nil {
		return nil, fmt.Errorf("index claims by storage class: %w", err)
	}
	return c, nil
}

// classWithoutVolume is the index of claims without a volume by storage class.
func classWithoutVolume(object any) ([]string, error) {
	claim, ok := object.(*v1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName != "" {
		return nil, nil
	}
	return []string{storage.ClaimClass(claim)}, nil
}

// Watch registers the event handlers, and returns once every claim that this node may select
// is enqueued.
func (c *Controller) Watch(ctx context.Context) error {
	return controller.RegisterHandlers(ctx,
		controller.EventHandler{Informer: c.Claims, Handler: controller.OnChange(c.changed, c.deleted)},
		controller.EventHandler{Informer: c.Classes, Handler: controller.OnChange(c.classChanged,
			func(*storagev1.StorageClass) {})})
}

// Run reconciles claims until the context ends. Watch has succeeded.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.versions.RequeueUnseen(ctx, c.Claims, c.loop.Enqueue)
	c.loop.Run(ctx, workers)
}

// Reconcile selects this node for a claim, skips the claim, or requeues it.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	claim := controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, key)
	if claim == nil {
		c.forget(key)
		return nil
	}
	if !c.versions.IsFresh(claim) {
		return c.versions.AwaitClaim(ctx, c.Client, claim)
	}
	class := c.classOf(claim)
	state := c.observe(claim, class)
	action := provision.DecideNode(state)
	if action == provision.CheckCapacity {
		c.checkCapacity(ctx, claim, class, &state)
		action = provision.DecideNode(state)
	}
	switch action {
	case provision.SelectNode:
		return c.selectNode(ctx, claim, class)
	case provision.RetryLater:
		klog.FromContext(ctx).V(4).Info("This node cannot serve the claim now", "capacity", state.Capacity, "classKnown",
			state.ClassKnown)
		c.loop.EnqueueAfter(key, c.delay(key))
	case provision.SkipClaim, provision.CheckCapacity:
		c.finish(key, claim, class)
	}
	return nil
}

// observe reads a claim and its class, nil for none.
func (c *Controller) observe(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) provision.NodeState {
	state := provision.NodeState{
		Wanted: claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && c.Serves(storage.ClaimProvisioner(claim)),
		Server: provision.ServerOf(claim.Annotations[storage.AnnSelectedNode], c.Node),
	}
	if class != nil {
		state.ClassKnown = true
		state.Immediate = class.VolumeBindingMode == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate
		state.Allowed = !c.HasTopology || topology.Allows(class.AllowedTopologies, c.Topology)
	}
	return state
}

// checkCapacity asks the driver for the capacity of this node. An answer without capacity counts as
// enough: CreateVolume then fails and reports the reason. A driver that cannot be reached has none.
func (c *Controller) checkCapacity(ctx context.Context, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass,
	state *provision.NodeState) {
	request, err := c.CapacityRequest(ctx, claim, class)
	var foreign *provision.LeftToOther
	if errors.As(err, &foreign) {
		state.Wanted = false
		return
	}
	if state.Allowed, state.Capacity = c.reachesSource(ctx, claim); state.Capacity == provision.CapacityShort ||
		!state.Allowed {
		return
	}
	var response *spec.GetCapacityResponse
	if err == nil {
		if len(c.Topology) > 0 {
			request.AccessibleTopology = &spec.Topology{Segments: c.Topology}
		}
		response, err = c.Driver.GetCapacity(ctx, request)
	}
	if status.Code(err) == codes.Unavailable { // the driver of this node does not run now, and others may
		state.Capacity = provision.CapacityShort
		return
	}
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Selecting this node for the claim: the driver does not report capacity", "err", err)
		return
	}
	size := claim.Spec.Resources.Requests.Storage().Value()
	answer := capacity.AnswerOf(response)
	if size > answer.Bytes || answer.Bounded && size > answer.Largest {
		state.Capacity = provision.CapacityShort
	}
}

// reachesSource reports whether this node reaches the source of the claim. If that cannot be found out now, the capacity is
// short: the claim is tried again.
func (c *Controller) reachesSource(ctx context.Context, claim *v1.PersistentVolumeClaim) (bool, provision.Capacity) {
	if c.ReachesSource == nil {
		return true, provision.CapacityEnough
	}
	reaches, err := c.ReachesSource(ctx, claim)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Whether this node reaches the source of the claim is unknown, trying again")
		return true, provision.CapacityShort
	}
	return reaches, provision.CapacityEnough
}

// selectNode writes this node into the claim, in the version that was observed.
func (c *Controller) selectNode(ctx context.Context, claim *v1.PersistentVolumeClaim,
	class *storagev1.StorageClass) error {
	key := controller.Key(claim)
	selection := patch.ForVersion(claim).Annotate(claim, map[string]string{storage.AnnSelectedNode: c.Node})
	_, err := c.writer.PatchClaim(ctx, claim, selection)
	switch {
	case errors.Is(err, controller.ErrGone):
	case patch.IsStale(err): // most likely another node wrote first
		c.loop.EnqueueAfter(key, c.delay(key))
		return nil
	case err != nil:
		c.reportRefused(claim, err)
		return err
	default:
		klog.FromContext(ctx).V(2).Info("Selected this node for the claim", "node", c.Node)
	}
	c.finish(key, claim, class)
	return nil
}

// reportRefused reports a refused write at the long intervals of a state: every node of the cluster may report the claim.
func (c *Controller) reportRefused(claim *v1.PersistentVolumeClaim, err error) {
	if controller.IsRefusal(err) {
		c.Reporter.Report(claim, controller.RefusalEvent("Selecting node "+c.Node+" for the claim", err))
	}
}

// finish drops a claim that needs no further attempt. Events that came since the claim and its class
// were read were ignored, because the claim counted as queued: finish handles them again.
func (c *Controller) finish(key string, read *v1.PersistentVolumeClaim, class *storagev1.StorageClass) {
	c.forget(key)
	now := controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, key)
	if now != nil && (now.ResourceVersion != read.ResourceVersion || c.classOf(now) != class) {
		c.changed(read, now)
	}
}

// changed queues a claim that needs a node, after a random delay.
func (c *Controller) changed(_, claim *v1.PersistentVolumeClaim) {
	key := controller.Key(claim)
	if provision.DecideNode(c.observe(claim, c.classOf(claim))) == provision.SkipClaim || c.isQueued(key) {
		return
	}
	c.loop.EnqueueAfter(key, c.delay(key))
}

// classChanged queues the claims of a class that allows this node now.
func (c *Controller) classChanged(_, class *storagev1.StorageClass) {
	claims, err := c.Claims.GetIndexer().ByIndex(byClass, class.Name)
	if err != nil { // no such index
		return
	}
	for _, object := range claims {
		if claim, ok := object.(*v1.PersistentVolumeClaim); ok {
			c.changed(nil, claim)
		}
	}
}

func (c *Controller) deleted(claim *v1.PersistentVolumeClaim) {
	c.versions.Forget(claim.UID)
	c.Reporter.Forget(claim.UID)
	c.forget(controller.Key(claim))
}

func (c *Controller) classOf(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	return controller.Lookup[*storagev1.StorageClass](c.Classes, storage.ClaimClass(claim))
}

// firstRetry is the delay of the second attempt without a base delay, firstBackoff that after a failure.
const (
	firstRetry   = time.Second
	firstBackoff = 100 * time.Millisecond
)

// delay counts an attempt and returns the random time until the attempt, which grows with
// the number of attempts.
func (c *Controller) delay(claim string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	delay := c.BaseDelay
	for range c.attempts[claim] {
		if delay = min(max(2*delay, firstRetry), c.MaxDelay); delay == c.MaxDelay {
			break
		}
	}
	c.attempts[claim]++
	return max(0, delay-time.Duration(rand.Float64()*float64(c.BaseDelay)))
}

// isQueued reports whether an attempt for the claim is in the queue.
func (c *Controller) isQueued(claim string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, queued := c.attempts[claim]
	return queued
}

func (c *Controller) forget(claim string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.attempts, claim)
}
