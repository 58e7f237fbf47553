// Package capacity decides which CSIStorageCapacity objects exist, with which content
// (KEP-1472, "storage capacity tracking").
//
// There is one object for each item: a topology segment of the driver and a storage class
// of the driver. For one item:
//
//	wanted  objects  answer   object            action
//	no      none     any      -                 Wait
//	no      some     any      any               Remove: all objects
//	yes     several  any      any               RemoveExtra: all objects but the oldest
//	yes     any      unknown  any               Ask the driver
//	yes     none     known    -                 Create
//	yes     one      known    other content     Update
//	yes     one      known    no owner          Update
//	yes     one      known    same content      Wait
//
// An item is wanted while a node lies in the segment and the class exists. The package
// does not decide when to ask the driver again: the controller then drops the answer.
package capacity
