package volume

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Config is what the reconciler works with.
type Config struct {
	Client   kubernetes.Interface
	Caches   *controller.Caches
	Versions *controller.Versions
	Reporter *controller.Reporter
	// MigratedTo returns the CSI driver that serves the in-tree plugin of a volume,
	// and false for a volume whose plugin is not migrated.
	MigratedTo func(volume *v1.PersistentVolume) (driver string, migrated bool)
	// WakeClaim has a claim looked at, by its key.
	WakeClaim func(claim string)
	// Honor is the gate HonorPVReclaimPolicy.
	Honor bool
}

// Controller keeps volumes true to their claims.
type Controller struct {
	Config
	writer *controller.Writer
	loop   *controller.Loop
}

// New returns the reconciler and registers it with the caches.
func New(config Config) (*Controller, error) {
	c := &Controller{Config: config, writer: controller.NewWriter(config.Client, config.Versions)}
	c.loop = controller.NewLoop("volumes", controller.Backoff{First: 20 * time.Millisecond, Most: time.Minute}, c.Reconcile)
	if err := c.watch(); err != nil {
		return nil, fmt.Errorf("watch for volumes: %w", err)
	}
	return c, nil
}

// Run reconciles volumes with so many workers until the context ends.
func (c *Controller) Run(ctx context.Context, workers int) {
	c.loop.Run(ctx, workers)
}

// Reconcile brings one volume's marks, phase and protection to where they belong.
func (c *Controller) Reconcile(ctx context.Context, name string) error {
	volume := c.Caches.Volume(name)
	if volume == nil || !c.Versions.Fresh(volume) {
		return nil
	}
	for _, step := range []func(context.Context, *v1.PersistentVolume) (*v1.PersistentVolume, error){
		c.mark, c.setPhase, c.reclaim, c.protect,
	} {
		var err error
		if volume, err = step(ctx, volume); err != nil || volume == nil {
			return err
		}
	}
	return nil
}

func (c *Controller) watch() error {
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		c.Caches.Volumes: controller.OnChange(c.volumeChanged, c.volumeGone),
		c.Caches.Claims:  controller.OnChange(c.claimChanged, c.claimGone),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("add handler: %w", err)
		}
	}
	return nil
}

func (c *Controller) volumeChanged(_, volume *v1.PersistentVolume) {
	c.loop.Enqueue(volume.Name)
}

func (c *Controller) volumeGone(volume *v1.PersistentVolume) {
	c.Versions.Forget(volume.UID)
	c.Reporter.Forget(volume.UID)
}

// claimChanged wakes the volumes that refer to a claim once it is new, or names
// another volume than before.
func (c *Controller) claimChanged(old, claim *v1.PersistentVolumeClaim) {
	if old == nil || old.UID != claim.UID || old.Spec.VolumeName != claim.Spec.VolumeName {
		c.claimGone(claim)
	}
}

func (c *Controller) claimGone(claim *v1.PersistentVolumeClaim) {
	for _, volume := range c.Caches.VolumesOf(controller.Key(claim)) {
		c.loop.Enqueue(volume.Name)
	}
	if claim.Spec.VolumeName != "" {
		c.loop.Enqueue(claim.Spec.VolumeName)
	}
}

// claimantOf compares a volume with the claim that has the name it refers to,
// nil if there is none.
func claimantOf(volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) binding.Claimant {
	ref := volume.Spec.ClaimRef
	switch {
	case ref == nil || ref.UID == "":
		return binding.NoClaimant
	case claim == nil || claim.UID != ref.UID:
		return binding.Gone
	case claim.Spec.VolumeName == "" && !binding.SameMode(volume, claim):
		return binding.Incompatible
	case claim.Spec.VolumeName == "":
		return binding.Unbound
	case claim.Spec.VolumeName == volume.Name:
		return binding.BoundHere
	}
	return binding.BoundElsewhere
}
