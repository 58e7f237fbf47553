// Package claim binds claims: it executes what [binding.DecideClaim] decides.
//
// A claim is looked at when it changes, when a volume comes that can serve it
// (the index wakes one claim, not all), when a volume that it names or that
// refers to it changes, and when its class or a default class comes. There is no
// periodic pass; only a claim that waits is looked at again after LookAgain.
//
// In-tree plugins provision in a queue of their own ([Controller.Provision]): a
// plugin that is slow or fails delays no binding. The PersistentVolume is recorded
// first, then the plugin creates the volume, then the phase becomes Bound: whatever
// the plugin created has a PersistentVolume, and is reclaimed with it. The claim
// carries no finalizer for this; one that an older version added is removed.
package claim
