package binding

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/btree"
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
	candidates *btree.BTreeG[*candidate]
	waiters    *btree.BTreeG[*waiter]
}

// degree is how many children a node of a B-tree has at least.
const degree = 32

func newBucket() *bucket {
	return &bucket{
		candidates: btree.NewG(degree, func(a, b *candidate) bool { return compareCandidates(a, b) < 0 }),
		waiters:    btree.NewG(degree, func(a, b *waiter) bool { return compareWaiters(a, b) < 0 }),
	}
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

func (b *bucket) isEmpty() bool {
	return b.candidates.Len() == 0 && b.waiters.Len() == 0
}

// bestFit returns the smallest candidate that satisfies the waiter, of those with the
// fewest access modes. Volumes with more access modes are kept for claims that need them.
func (b *bucket) bestFit(w *waiter, usable func(*candidate) bool) *candidate {
	var best *candidate
	first, found := b.candidates.Min()
	for modes := 0; found; {
		modes, found = first.modeCount, false
		// No name sorts before "": the search starts with the first candidate of that capacity.
		b.candidates.AscendGreaterOrEqual(&candidate{modeCount: modes, capacity: w.request}, func(c *candidate) bool {
			if c.modeCount != modes {
				first, found = c, true
				return false
			}
			if usable(c) && w.isSatisfiedBy(c) {
				best = c
			}
			return best == nil
		})
	}
	return best
}

// afterClaims sorts after the key of every claim.
const afterClaims = "\xff"

// largestWaiter returns the waiter with the largest request that the candidate satisfies.
func (b *bucket) largestWaiter(c *candidate) *waiter {
	var largest *waiter
	b.waiters.DescendLessOrEqual(&waiter{request: c.capacity, claim: afterClaims}, func(w *waiter) bool {
		if w.isSatisfiedBy(c) {
			largest = w
		}
		return largest == nil
	})
	return largest
}
