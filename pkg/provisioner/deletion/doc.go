// Package deletion reclaims the volumes of one CSI driver: it executes what
// [reclaim.Decide] decides. It alone writes the finalizer External and calls
// DeleteVolume, also for volumes that were made for nothing ([Controller.Discard]).
//
// A volume is looked at when it changes and when a VolumeAttachment of it goes.
// Before DeleteVolume, volume and claim are read live; after its success, which
// is remembered by the volume's UID, only the API writes are retried.
//
// A bound volume that was deleted before External came is marked: the pv-controller
// then holds pv-protection until the mark says done. Beside another controller the
// volume is gone once it is released, and an event names what has stayed behind.
//
// With the gate off the same loop runs: [reclaim.Decide] knows what that means.
package deletion
