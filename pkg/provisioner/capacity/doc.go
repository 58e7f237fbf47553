// Package capacity keeps one CSIStorageCapacity object for each part of the cluster
// and each class of the driver: it executes [capacity.Decide].
//
// The driver is asked when an item is new, when a volume of the item comes, grows or
// goes, when a volume could not be made, and once in every --capacity-poll-interval,
// for what the driver has left can change without any of this. Its last answer is
// remembered, so that an object which somebody else changed or deleted is put right
// without asking, and no write is sent that changes nothing.
package capacity
