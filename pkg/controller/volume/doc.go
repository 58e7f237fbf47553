// Package volume keeps the phase of volumes true, releases them when their claim
// is gone, and writes the marks and the protection that go with that: it executes
// [binding.DecideVolume], [reclaim.DecideMarks], [reclaim.DecideInTree] and
// [protection.DecideVolume], in this order.
//
// A volume that is being deleted loses pv-protection in the same write that says
// Released: the finalizer of whoever reclaims it (External or InTree) holds it
// from there on. Nothing is released without a live read of the claim by UID.
package volume
