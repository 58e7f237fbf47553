package reclaimer

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// sharing returns the other volumes whose data would be deleted with the data of this volume:
// the volumes at its place or below, and the volumes above that keep their data. A volume
// above that is to be reclaimed waits for this volume, so this volume must not wait for it.
func (c *Controller) sharing(volume *v1.PersistentVolume) []*v1.PersistentVolume {
	others := c.inside(volume)
	for _, outer := range c.around(volume) {
		if !c.awaitsInner(observation{volume: outer, claim: c.Caches.Claim(controller.ClaimKey(outer))}, false) {
			others = append(others, outer)
		}
	}
	return others
}

// confirmSharing is sharing, but a volume above counts as to be reclaimed only if the API
// server says so, too.
func (c *Controller) confirmSharing(ctx context.Context, volume *v1.PersistentVolume) ([]*v1.PersistentVolume, error) {
	others := c.inside(volume)
	for _, outer := range c.around(volume) {
		live, claim, _, err := controller.LivePair(ctx, c.Client, outer)
		if err != nil {
			return nil, err
		}
		if live != nil && !c.awaitsInner(observation{volume: live, claim: claim}, true) {
			others = append(others, live)
		}
	}
	return others, nil
}

// inside returns the other volumes with data at the place of the volume or below.
func (c *Controller) inside(volume *v1.PersistentVolume) []*v1.PersistentVolume {
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

// around returns the volumes whose directory contains the directory of the volume.
func (c *Controller) around(volume *v1.PersistentVolume) []*v1.PersistentVolume {
	var others []*v1.PersistentVolume
	location := c.Plugins.Location(volume)
	for _, place := range c.Plugins.Places(volume) {
		if place == location {
			continue
		}
		for _, other := range c.volumesAt(byLocation, place) {
			if !c.Plugins.Apart(volume, other) {
				others = append(others, other)
			}
		}
	}
	return others
}

// awaitsInner reports whether the volume is to be reclaimed once no volume is inside.
func (c *Controller) awaitsInner(outer observation, confirmed bool) bool {
	return c.stateOf(outer, confirmed).AwaitsOthers()
}
