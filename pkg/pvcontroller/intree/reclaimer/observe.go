package reclaimer

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// observation is a volume, the claim with the name that the volume refers to, and the
// pod with the name of the volume's recycler.
type observation struct {
	volume *v1.PersistentVolume
	claim  *v1.PersistentVolumeClaim
	pod    *v1.Pod
	// refusal is the error of an API server that forbids to read the pod: the rights to
	// recycle are optional.
	refusal error
	// sharing are the other volumes whose data would be deleted, too.
	sharing []*v1.PersistentVolume
	// recycled: a recycler pod that was seen in this pass has removed the data. It is not remembered: a restored etcd
	// may bring the claim back, which writes to the volume again.
	recycled bool
	state    plugin.State
	// read is when the reads of volume and claim began, of a confirmed state.
	read time.Time
}

// observe reads the caches only.
func (c *Controller) observe(volume *v1.PersistentVolume) observation {
	o := observation{volume: volume, claim: c.Caches.Claim(controller.ClaimKey(volume))}
	if c.isWorkedOn(volume) && c.hasPlugin(volume) {
		o.sharing = c.sharing(volume)
	}
	if recycler := c.recyclerPod(volume); recycler != nil {
		o.pod = c.Caches.Pod(controller.Key(recycler))
	}
	o.state = c.stateOf(o, false)
	return o
}

// observeAgain returns the observation with what was remembered since.
func (c *Controller) observeAgain(o observation) *observation {
	o.state = c.stateOf(o, o.state.Confirmed)
	return &o
}

// confirm reads from the API server the volume, its claim, its recycler pod and the volumes
// that wait for it. It returns nil if the volume is gone or another volume has its name. Volume and claim are read
// last: while the other reads wait for their turn, an administrator may turn the policy to Retain.
func (c *Controller) confirm(ctx context.Context, o observation) (*observation, error) {
	live := observation{}
	var err error
	live.pod, err = c.readRecycler(ctx, o.volume)
	switch {
	case apierrors.IsForbidden(err):
		live.refusal = err
	case err != nil:
		return nil, err
	}
	if live.sharing, err = c.confirmSharing(ctx, o.volume); err != nil {
		return nil, err
	}
	live.volume, live.claim, live.read, err = controller.LivePair(ctx, c.Client, o.volume)
	switch {
	case err != nil:
		return nil, err
	case live.volume == nil && c.Caches.HasVolume(o.volume): // no event may follow
		return nil, controller.ErrStaleCache
	case live.volume == nil:
		return nil, nil
	}
	if policyOf(live.volume) != policyOf(o.volume) { // it may need its recycler pod
		return c.confirm(ctx, live)
	}
	live.state = c.stateOf(live, true)
	return &live, nil
}

func (c *Controller) stateOf(o observation, confirmed bool) plugin.State {
	volume, reclaimer, done := o.volume, c.reclaimerOf(o.volume), c.memory.Get(o.volume.UID)
	_, recycles := c.Plugins.RecyclerFor(volume)
	external := reclaimer == plugin.ReclaimerPlugin && finalizer.Has(volume.Finalizers, finalizer.External)
	return plugin.State{
		Honor:      c.Honor,
		Reclaimer:  reclaimer,
		CanRecycle: recycles,
		Policy:     policyOf(volume),
		Phase:      storage.PhaseOf(volume.Status.Phase),
		Dynamic:    storage.HasProvisioner(volume),
		Deleting:   volume.DeletionTimestamp != nil,
		Protected:  external || finalizer.Has(volume.Finalizers, finalizer.InTree),
		Claim:      storage.ClaimOf(volume, o.claim),
		Shared:     len(o.sharing) > 0,
		Used:       len(c.usersOf(o)) > 0,
		Deleted:    done.deleted == plugin.DataID(volume),
		Recycler:   o.recycler(),
		Recycled:   o.recycled,
		Confirmed:  confirmed,
	}
}

// recycler returns the state of the recycler pod.
func (o observation) recycler() plugin.Recycler {
	if o.refusal != nil {
		return plugin.RecyclerForbidden
	}
	return plugin.RecyclerOf(o.pod, o.volume)
}

// usersOf returns the pods, as namespace/name, that may still write to the volume whose
// claim is gone. If a new claim has the name, the pods use the new claim.
func (c *Controller) usersOf(o observation) []string {
	if o.claim != nil {
		return nil
	}
	var users []string
	for _, pod := range c.Caches.PodsOf(controller.ClaimKey(o.volume)) {
		if !isFinished(pod) {
			users = append(users, controller.Key(pod))
		}
	}
	slices.Sort(users)
	return users
}
