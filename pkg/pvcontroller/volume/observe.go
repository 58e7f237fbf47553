package volume

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// reclaimed is a volume that may have to be reclaimed, the claim that has the name
// it refers to, and the pod that has the name of its recycler.
type reclaimed struct {
	volume *v1.PersistentVolume
	claim  *v1.PersistentVolumeClaim
	pod    *v1.Pod
	// refusal is why the pod may not be read: the rights to recycle are granted apart
	// from the others.
	refusal error
	state   reclaim.InTreeState
}

// observeReclaim looks at the caches only.
func (c *Controller) observeReclaim(volume *v1.PersistentVolume) reclaimed {
	o := reclaimed{volume: volume, claim: c.Caches.Claim(controller.ClaimKey(volume))}
	if recycler := c.recyclerPod(volume); recycler != nil {
		o.pod = c.Caches.Pod(controller.Key(recycler))
	}
	o.state = c.stateOf(o, false)
	return o
}

// again is the observation with what is remembered since.
func (c *Controller) again(o reclaimed) *reclaimed {
	o.state = c.stateOf(o, o.state.Confirmed)
	return &o
}

func (c *Controller) stateOf(o reclaimed, confirmed bool) reclaim.InTreeState {
	volume, plugin, done := o.volume, c.pluginOf(o.volume), c.memory.Get(o.volume.UID)
	_, recycles := c.Plugins.RecyclerFor(volume)
	left := plugin == reclaim.Deletes && finalizer.Has(volume.Finalizers, finalizer.External)
	return reclaim.InTreeState{
		Honor:     c.Honor,
		Plugin:    plugin,
		Recycles:  recycles,
		Policy:    policyOf(volume),
		Phase:     storage.PhaseOf(volume.Status.Phase),
		Dynamic:   storage.IsDynamic(volume),
		Deleting:  volume.DeletionTimestamp != nil || done.objectDeleted,
		Protected: left || finalizer.Has(volume.Finalizers, finalizer.InTree),
		Claim:     storage.ClaimOf(volume, o.claim),
		Shared:    len(c.sharing(volume)) > 0,
		Used:      len(c.usersOf(o)) > 0,
		Deleted:   done.deleted == reclaim.RecyclerMark(volume),
		Recycler:  reclaim.RecyclerOf(o.pod, volume),
		Recycled:  done.recycled == reclaim.RecyclerMark(volume),
		Confirmed: confirmed,
	}
}

// sharing returns the other volumes whose data would be gone with this one's.
func (c *Controller) sharing(volume *v1.PersistentVolume) []*v1.PersistentVolume {
	location := c.Plugins.Location(volume)
	if location == "" {
		return nil
	}
	var others []*v1.PersistentVolume
	for _, other := range c.volumesAt(byPlace, location) {
		if other.Name != volume.Name && !c.Plugins.Apart(volume, other) {
			others = append(others, other)
		}
	}
	return others
}

// usersOf returns the pods, as namespace/name, that may still write to the volume
// though its claim is gone. Where another claim has the name by now, the pods are that
// claim's.
func (c *Controller) usersOf(o reclaimed) []string {
	if o.claim != nil {
		return nil
	}
	var users []string
	for _, pod := range c.Caches.PodsOf(controller.ClaimKey(o.volume)) {
		if !finished(pod) {
			users = append(users, controller.Key(pod))
		}
	}
	slices.Sort(users)
	return users
}

// confirmReclaim reads the volume, its claim and its recycler pod from the API
// server. It returns nil if the volume is gone, or another one has its name.
func (c *Controller) confirmReclaim(ctx context.Context, o reclaimed) (*reclaimed, error) {
	volume, err := controller.LiveVolume(ctx, c.Client, o.volume)
	if volume == nil || err != nil {
		return nil, err
	}
	live := reclaimed{volume: volume}
	if live.claim, err = controller.LiveClaim(ctx, c.Client, volume); err != nil {
		return nil, err
	}
	live.pod, err = c.readRecycler(ctx, volume)
	switch {
	case apierrors.IsForbidden(err):
		live.refusal = err
	case err != nil:
		return nil, err
	}
	live.state = c.stateOf(live, true)
	return &live, nil
}
