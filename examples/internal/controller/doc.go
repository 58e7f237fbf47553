// Package controller runs a guest for each object of a custom resource, and ends it when the object is deleted: at once
// if the deletion is forced, otherwise gracefully until the deadline that [deadline.Of] reads. It is what the examples
// of graceful deletion share, in plain client-go.
//
// A live object gets the finalizer, and then its guest. A deleted one, while its guest runs:
//
//	deletion   guest was asked     next
//	in grace   no                  ask the guest to shut down
//	in grace   for another time    tell the deadline that has moved
//	in grace   yes                 wait for the guest, or for the timer of the deadline
//	passed     yes or no           read the object live, and power off
//	forced     yes or no           read the object live, and power off
//
// Once the end of the guest is proven, the object is read live and the finalizer is removed. [Decide] has the whole
// table. One timer for each object is set to what remains; nothing is polled. What has to be known after kill -9 is in
// the object and in the state directory (package guest).
package controller
