package binding

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// isFree reports whether any claim may be bound to the volume: the volume is Available,
// refers to no claim and is not being deleted.
func isFree(volume *v1.PersistentVolume) bool {
	return volume.Spec.ClaimRef == nil && volume.Status.Phase == v1.VolumeAvailable && volume.DeletionTimestamp == nil
}

// bucketKey has the fields that are equal in a volume and its claim.
type bucketKey struct {
	class, attributesClass string
	mode                   v1.PersistentVolumeMode
}

// candidate is a free volume.
type candidate struct {
	name      string
	key       bucketKey
	capacity  resource.Quantity
	modes     []v1.PersistentVolumeAccessMode
	modeCount int // number of different access modes
	labels    labels.Set
}

func newCandidate(volume *v1.PersistentVolume) *candidate {
	return &candidate{
		name: volume.Name,
		key: bucketKey{
			class:           storage.VolumeClass(volume),
			attributesClass: ptr.Deref(volume.Spec.VolumeAttributesClassName, ""),
			mode:            storage.ModeOf(volume.Spec.VolumeMode),
		},
		capacity:  *capacity(volume),
		modes:     volume.Spec.AccessModes,
		modeCount: countModes(volume.Spec.AccessModes),
		labels:    volume.Labels,
	}
}

func countModes(modes []v1.PersistentVolumeAccessMode) int {
	different := map[v1.PersistentVolumeAccessMode]bool{}
	for _, mode := range modes {
		different[mode] = true
	}
	return len(different)
}

// equals reports whether the candidate still describes the volume.
func (c *candidate) equals(volume *v1.PersistentVolume) bool {
	now := newCandidate(volume)
	return c.key == now.key && c.capacity.Cmp(now.capacity) == 0 &&
		slices.Equal(c.modes, now.modes) && labels.Equals(c.labels, now.labels)
}

// waiter is a claim that waits for a volume.
type waiter struct {
	claim    string
	key      bucketKey
	request  resource.Quantity
	modes    []v1.PersistentVolumeAccessMode
	selector labels.Selector
}

func newWaiter(claim *v1.PersistentVolumeClaim) (*waiter, error) {
	w := &waiter{
		claim: claim.Namespace + "/" + claim.Name,
		key: bucketKey{
			class:           storage.ClaimClass(claim),
			attributesClass: ptr.Deref(claim.Spec.VolumeAttributesClassName, ""),
			mode:            storage.ModeOf(claim.Spec.VolumeMode),
		},
		request: request(claim),
		modes:   claim.Spec.AccessModes,
	}
	if claim.Spec.Selector == nil {
		return w, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("parse selector of claim %s: %w", w.claim, err)
	}
	w.selector = selector
	return w, nil
}

func (w *waiter) isSatisfiedBy(c *candidate) bool {
	return c.capacity.Cmp(w.request) >= 0 && offersModes(c.modes, w.modes) &&
		(w.selector == nil || w.selector.Matches(c.labels))
}

// bucket sorts candidates by the number of access modes and by capacity, and waiters by
// request, all ascending.
type bucket struct {
	candidates []*candidate
	waiters    []*waiter
}

func compareCandidates(a, b *candidate) int {
	if order := a.modeCount - b.modeCount; order != 0 {
		return order
	}
	if order := a.capacity.Cmp(b.capacity); order != 0 {
		return order
	}
	return strings.Compare(a.name, b.name)
}

func compareWaiters(a, b *waiter) int {
	if order := a.request.Cmp(b.request); order != 0 {
		return order
	}
	return strings.Compare(a.claim, b.claim)
}

func (b *bucket) addCandidate(c *candidate) {
	at, _ := slices.BinarySearchFunc(b.candidates, c, compareCandidates)
	b.candidates = slices.Insert(b.candidates, at, c)
}

func (b *bucket) removeCandidate(c *candidate) {
	if at, found := slices.BinarySearchFunc(b.candidates, c, compareCandidates); found {
		b.candidates = slices.Delete(b.candidates, at, at+1)
	}
}

func (b *bucket) addWaiter(w *waiter) {
	at, _ := slices.BinarySearchFunc(b.waiters, w, compareWaiters)
	b.waiters = slices.Insert(b.waiters, at, w)
}

func (b *bucket) removeWaiter(w *waiter) {
	if at, found := slices.BinarySearchFunc(b.waiters, w, compareWaiters); found {
		b.waiters = slices.Delete(b.waiters, at, at+1)
	}
}

func (b *bucket) isEmpty() bool {
	return len(b.candidates) == 0 && len(b.waiters) == 0
}

// bestFit returns the smallest candidate that satisfies the waiter, of those with the
// fewest access modes. Volumes with more access modes are kept for claims that need them.
func (b *bucket) bestFit(w *waiter, usable func(*candidate) bool) *candidate {
	for rest := b.candidates; len(rest) > 0; {
		end, _ := slices.BinarySearchFunc(rest, rest[0].modeCount, func(c *candidate, breadth int) int {
			return afterEqual(c.modeCount - breadth)
		})
		from, _ := slices.BinarySearchFunc(rest[:end], w.request, func(c *candidate, request resource.Quantity) int {
			return orBefore(c.capacity.Cmp(request))
		})
		for _, c := range rest[from:end] {
			if usable(c) && w.isSatisfiedBy(c) {
				return c
			}
		}
		rest = rest[end:]
	}
	return nil
}

// largestWaiter returns the waiter with the largest request that the candidate satisfies.
func (b *bucket) largestWaiter(c *candidate) *waiter {
	to, _ := slices.BinarySearchFunc(b.waiters, c.capacity, func(w *waiter, capacity resource.Quantity) int {
		return afterEqual(w.request.Cmp(capacity))
	})
	for at := to - 1; at >= 0; at-- {
		if b.waiters[at].isSatisfiedBy(c) {
			return b.waiters[at]
		}
	}
	return nil
}

// afterEqual changes a comparison so that a search finds the first greater element.
func afterEqual(order int) int {
	if order <= 0 {
		return -1
	}
	return 1
}

// orBefore changes a comparison so that a search finds the first of equal elements.
func orBefore(order int) int {
	if order < 0 {
		return -1
	}
	return 1
}
