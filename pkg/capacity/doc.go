// Package capacity decides which CSIStorageCapacity objects there shall be, and
// what they shall say (KEP-1472, "storage capacity tracking").
//
// There is one object for every item: a part of the cluster that a driver tells
// from others by topology, times a storage class of the driver. For one item:
//
//	wanted  objects  answer   object           action
//	no      none     any      -                Wait
//	no      some     any      any              Remove, all of them
//	yes     several  any      any              RemoveExtra, all but the oldest
//	yes     any      unknown  any              Ask the driver
//	yes     none     known    -                Create
//	yes     one      known    says otherwise   Update
//	yes     one      known    has no owner     Update
//	yes     one      known    says the same    Wait
//
// An item is wanted while a node has the topology and the class exists. The package
// does not know when the driver should be asked anew: then the answer is forgotten.
package capacity
