// Package claim binds claims: it executes what [binding.DecideClaim] decides.
//
// A claim is looked at when it changes, when a volume comes that can serve it
// (the index wakes one claim, not all), when a volume that it names or that
// refers to it changes, and when its class or a default class comes. There is no
// periodic pass; only a claim that waits is looked at again after LookAgain.
//
// In-tree plugins provision in a queue of their own ([Controller.Provision]): a
// plugin that is slow or fails holds up no binding. The claim is held by the
// finalizer Provisioning from the write that asks for the volume until the one
// that binds it; a claim that goes meanwhile is let go of once what the plugin may
// have made is deleted.
package claim
