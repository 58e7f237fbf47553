package nodedeployment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Driver knows how much is left on this node.
type Driver interface {
	GetCapacity(ctx context.Context, request *spec.GetCapacityRequest) (*spec.GetCapacityResponse, error)
}

// Config is what the controller works with.
type Config struct {
	Client          kubernetes.Interface
	Claims, Classes cache.SharedIndexInformer
	Driver          Driver
	// Question is what to ask the driver about room for a claim, but for the place.
	// [provision.NotOurs] is for somebody else to serve.
	Question func(ctx context.Context, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) (*spec.GetCapacityRequest, error)
	// Serves says whether claims that name the provisioner are served here.
	Serves func(provisioner string) bool
	// Node is the name of this node.
	Node string
	// HasTopology: not every node reaches every volume. Topology is where the driver
	// says that this node is then.
	HasTopology bool
	Topology    map[string]string
	// BaseDelay bounds the time until the first try for a claim, MaxDelay that
	// between two tries.
	BaseDelay, MaxDelay time.Duration
}

// Controller chooses this node for claims.
type Controller struct {
	Config
	versions *controller.Versions
	writer   *controller.Writer
	loop     *controller.Loop

	mu sync.Mutex
	// tries are how often the node was tried for claims that are waited with, by their
	// keys: each of these is in the queue.
	tries map[string]int
}

// New returns the controller and registers it with the cache of claims.
func New(config Config) (*Controller, error) {
	versions := controller.NewVersions()
	c := &Controller{Config: config, versions: versions, writer: controller.NewWriter(config.Client, versions), tries: map[string]int{}}
	c.loop = controller.NewLoop("nodelocal", controller.Backoff{Initial: max(config.BaseDelay, time.Millisecond), Max: max(config.MaxDelay, time.Millisecond)}, c.Reconcile).
		Only(func(key string) bool { return controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, key) != nil })
	if _, err := config.Claims.AddEventHandler(controller.OnChange(c.changed, c.gone)); err != nil {
		return nil, fmt.Errorf("watch claims: %w", err)
	}
	return c, nil
}

// Run chooses with so many workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.loop.Run(ctx, workers)
}

// Reconcile chooses this node for a claim whose time has come, or leaves it.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	claim := controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, key)
	if claim == nil {
		c.forget(key)
		return nil
	}
	choice := c.choiceOf(claim)
	action := provision.DecideChoice(choice)
	if action == provision.AskRoom {
		c.ask(ctx, claim, &choice)
		action = provision.DecideChoice(choice)
	}
	switch action {
	case provision.Choose:
		return c.choose(ctx, claim)
	case provision.ComeBack:
		klog.FromContext(ctx).V(4).Info("This node cannot serve the claim now", "room", choice.Room, "classKnown", choice.Classed)
		c.loop.EnqueueAfter(key, c.delay(key))
	case provision.Leave, provision.AskRoom:
		c.settle(key, claim)
	}
	return nil
}

func (c *Controller) choiceOf(claim *v1.PersistentVolumeClaim) provision.Choice {
	choice := provision.Choice{
		Wanted: claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && c.Serves(storage.ClaimProvisioner(claim)),
		Server: provision.ServerOf(claim.Annotations[storage.AnnSelectedNode], c.Node),
	}
	if class := c.classOf(claim); class != nil {
		choice.Classed = true
		choice.Immediate = class.VolumeBindingMode == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate
		choice.Allowed = !c.HasTopology || topology.Allows(class.AllowedTopologies, c.Topology)
	}
	return choice
}

// ask finds out whether there is room. Where that fails, the node is chosen: what is
// wrong is then found and reported where the volume is made.
func (c *Controller) ask(ctx context.Context, claim *v1.PersistentVolumeClaim, choice *provision.Choice) {
	class := c.classOf(claim)
	if class == nil { // it went a moment ago
		choice.Classed = false
		return
	}
	request, err := c.Question(ctx, claim, class)
	var foreign *provision.NotOurs
	if errors.As(err, &foreign) {
		choice.Wanted = false
		return
	}
	choice.Room = provision.Enough
	var response *spec.GetCapacityResponse
	if err == nil {
		if len(c.Topology) > 0 {
			request.AccessibleTopology = &spec.Topology{Segments: c.Topology}
		}
		response, err = c.Driver.GetCapacity(ctx, request)
	}
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Choosing this node for the claim, for the driver does not tell how much is left", "err", err)
		return
	}
	wanted := claim.Spec.Resources.Requests.Storage().Value()
	answer := capacity.AnswerOf(response)
	if wanted > answer.Bytes || answer.Bounded && wanted > answer.Largest {
		choice.Room = provision.TooLittle
	}
}

// choose writes this node into the claim, unless anything has changed since.
func (c *Controller) choose(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	key := controller.Key(claim)
	chosen := patch.ForVersion(claim).Annotate(claim, map[string]string{storage.AnnSelectedNode: c.Node})
	_, err := c.writer.PatchClaim(ctx, claim, chosen)
	switch {
	case apierrors.IsNotFound(err):
	case patch.IsStale(err): // most likely another node was faster
		c.loop.EnqueueAfter(key, c.delay(key))
		return nil
	case err != nil:
		return err
	default:
		klog.FromContext(ctx).V(2).Info("This node was chosen for the claim", "node", c.Node)
	}
	c.settle(key, claim)
	return nil
}

// settle forgets a claim that is not waited with any more. An event that came since it
// was read was taken for one that is in the queue already.
func (c *Controller) settle(key string, read *v1.PersistentVolumeClaim) {
	c.forget(key)
	if now := controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, key); now != nil && now.ResourceVersion != read.ResourceVersion {
		c.changed(read, now)
	}
}

// changed draws a time for a claim that has come to be for any node.
func (c *Controller) changed(_, claim *v1.PersistentVolumeClaim) {
	key := controller.Key(claim)
	if provision.DecideChoice(c.choiceOf(claim)) == provision.Leave || c.waiting(key) {
		return
	}
	c.loop.EnqueueAfter(key, c.delay(key))
}

func (c *Controller) gone(claim *v1.PersistentVolumeClaim) {
	c.versions.Forget(claim.UID)
	c.forget(controller.Key(claim))
}

func (c *Controller) classOf(claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	return controller.Lookup[*storagev1.StorageClass](c.Classes, storage.ClaimClass(claim))
}

// delay counts a try and draws the time until it: the longer the more there were.
func (c *Controller) delay(claim string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	delay := c.BaseDelay
	for range c.tries[claim] {
		if delay = min(2*delay, c.MaxDelay); delay == c.MaxDelay {
			break
		}
	}
	c.tries[claim]++
	return max(0, delay-time.Duration(rand.Float64()*float64(c.BaseDelay)))
}

func (c *Controller) waiting(claim string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, waiting := c.tries[claim]
	return waiting
}

func (c *Controller) forget(claim string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tries, claim)
}
