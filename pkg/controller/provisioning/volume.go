package provisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// ask calls the driver and remembers what is known of the volume since.
func (c *Controller) ask(ctx context.Context, o *observation, s provision.State) (*observation, error) {
	if s.Want == provision.Wanted {
		c.reportStart(o)
	}
	c.note(o, func(e *entry) {
		e.tell(provision.Pending)
		e.claim, e.plan, e.node = o.claim, o.plan.kept(), o.plan.selected
		e.last = e.plan
	})
	made, err := c.Provisioner.create(ctx, o.plan)
	if err == nil {
		made.volume = c.complete(made.volume, o)
		err = c.impossible(made, o)
	}
	if err != nil {
		return c.failed(ctx, o, s, err)
	}
	klog.FromContext(ctx).V(2).Info("Volume created in the storage system", "volume", o.name, "handle", made.shown)
	c.note(o, func(e *entry) {
		e.tell(provision.Made)
		e.made, e.useless, e.handle, e.shown = made.volume, made.useless, made.handle, made.shown
	})
	return o.next(o.claim), nil
}

// impossible refuses a volume of which nothing is to be deleted: one without a
// handle, or with the handle of somebody else's.
func (c *Controller) impossible(made answer, o *observation) error {
	if made.handle == "" {
		return status.Error(codes.Internal, "the driver returned no volume handle")
	}
	others := slices.DeleteFunc(c.Deletion.Naming(made.volume), func(name string) bool { return name == o.name })
	if len(others) > 0 || !c.memory.reserve(c.Deletion.HandleOf(made.volume), o.claim.UID) {
		return status.Errorf(codes.Internal, "the driver returned the volume handle %q, which another volume has", made.shown)
	}
	return nil
}

// failed notes what an error of the driver says. The request is kept while the
// driver may be at it, unless there is a volume that was made with another one.
func (c *Controller) failed(ctx context.Context, o *observation, s provision.State, err error) (*observation, error) {
	code := status.Code(err)
	asked := provision.After(provision.OutcomeOf(code), s.Want, s.Asked)
	full := code == codes.ResourceExhausted && c.Provisioner.Driver.HasTopology()
	c.note(o, func(e *entry) {
		e.tell(asked)
		if asked != provision.Pending || code == codes.AlreadyExists {
			e.plan = nil
		}
		if code == codes.AlreadyExists {
			e.last = nil
		}
		if full {
			e.unfit = o.claim.Annotations[binding.SelectedNode]
		}
	})
	if c.Failed != nil {
		c.Failed(binding.ClaimClass(o.claim))
	}
	after := o.next(o.claim)
	after.plan = nil
	switch {
	case asked == provision.Settled:
		return after, nil
	case asked == provision.Denied: // it is to be said twice, and not long after
		c.loop.EnqueueAfter(o.subject().key, c.Backoff.First)
		return nil, nil
	case s.Want == provision.Unwanted:
		return nil, c.reportUnresolved(o, err)
	}
	c.count(o, err)
	hopeless := code == codes.InvalidArgument && s.Want == provision.Wanted // the same request will have the same answer
	failure := c.reportFailure(o, c.sentence(o, err, hopeless))
	if hopeless {
		klog.FromContext(ctx).Error(failure, "The driver refuses the request, trying again later", "wait", c.Backoff.Most)
		c.loop.EnqueueAfter(o.subject().key, c.Backoff.Most)
		return nil, nil
	}
	if full && c.wantOf(after) == provision.Misplaced {
		return after, nil
	}
	return nil, failure
}

// sentence is what the user reads of an error of the driver.
func (c *Controller) sentence(o *observation, err error, hopeless bool) error {
	if hopeless {
		return fmt.Errorf("failed to provision volume with StorageClass %q, and it is not tried again for %s unless class, node or annotations of the claim change: %w",
			binding.ClaimClass(o.claim), c.Backoff.Most, err)
	}
	return fmt.Errorf("failed to provision volume with StorageClass %q: %w", binding.ClaimClass(o.claim), err)
}

// complete makes the object for the volume refer to the claim.
func (c *Controller) complete(volume *v1.PersistentVolume, o *observation) *v1.PersistentVolume {
	volume.Spec.ClaimRef = &v1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1",
		Namespace: o.claim.Namespace, Name: o.claim.Name, UID: o.claim.UID, ResourceVersion: o.claim.ResourceVersion,
	}
	volume.Spec.StorageClassName = binding.ClaimClass(o.claim)
	metav1.SetMetaDataAnnotation(&volume.ObjectMeta, binding.ProvisionedBy, o.plan.provisioner)
	if c.Holds {
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, binding.HoldsClaims, string(o.claim.UID))
	}
	return volume
}

// save records the volume. That one of its name exists is success only if it is
// this very volume.
func (c *Controller) save(ctx context.Context, o *observation) (*observation, error) {
	e, _ := c.memory.of(o.claim.UID)
	c.note(o, func(e *entry) { e.seen = false })
	_, err := c.Client.CoreV1().PersistentVolumes().Create(ctx, e.made, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return c.compare(ctx, o)
	}
	if err != nil {
		return nil, c.reportFailure(o, fmt.Errorf("create volume object %s: %w", o.name, err))
	}
	return c.saved(o), nil
}

// compare reads the volume that has the name.
func (c *Controller) compare(ctx context.Context, o *observation) (*observation, error) {
	after, err := c.readBoth(ctx, o)
	if err != nil {
		return nil, err
	}
	if c.knownOf(after) == provision.Recorded {
		return c.saved(o), nil
	}
	return after, nil
}

func (c *Controller) saved(o *observation) *observation {
	e, _ := c.memory.of(o.claim.UID)
	c.note(o, func(e *entry) {
		e.settle()
		e.saved, e.taken = true, false
	})
	if now, _ := c.memory.of(o.claim.UID); now.seen && e.made != nil {
		c.memory.release(c.Deletion.HandleOf(e.made))
	}
	c.count(o, nil)
	c.reportSuccess(o)
	after := o.next(o.claim)
	after.plan = nil
	return after
}

// discard deletes a volume that nothing records. Why it cannot be used, if that is
// why, is what the user reads.
func (c *Controller) discard(ctx context.Context, o *observation) (*observation, error) {
	e, _ := c.memory.of(o.claim.UID)
	if len(c.Deletion.Naming(e.made)) > 0 || o.volume != nil && c.Deletion.SameDisk(e.made, o.volume) {
		c.reportRecordedElsewhere(o, e.shown)
	} else if err := c.Deletion.Discard(ctx, e.made, e.handle); err != nil {
		return nil, c.reportCleanupFailed(o, err)
	} else {
		klog.FromContext(ctx).V(2).Info("Volume deleted in the storage system, for the claim does not want it", "volume", o.name, "handle", e.shown)
	}
	c.forgetMade(o, e)
	after := o.next(o.claim)
	after.plan = nil
	if e.useless != "" && c.wantOf(after) == provision.Wanted {
		err := errors.New(e.useless)
		c.count(o, err)
		return nil, c.reportFailure(o, err)
	}
	return after, nil
}

// forgetMade takes note that the volume that was made is nobody's affair any more.
func (c *Controller) forgetMade(o *observation, e entry) {
	c.memory.release(c.Deletion.HandleOf(e.made))
	c.note(o, (*entry).settle)
}
