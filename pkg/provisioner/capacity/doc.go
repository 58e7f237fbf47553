// Package capacity writes one CSIStorageCapacity object for each topology segment and
// storage class of the driver: it executes [capacity.Decide].
//
// GetCapacity is called when an item is new, when a volume of the item is created, resized
// or deleted, when CreateVolume failed, and in every --capacity-poll-interval, because
// capacity can change for other reasons too. The last answer is remembered: an object that
// another client changed or deleted is restored without asking, and unchanged objects are
// not written.
package capacity
