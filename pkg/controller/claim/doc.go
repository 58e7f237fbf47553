// Package claim binds claims: it executes what [binding.DecideClaim] decides.
//
// A claim is looked at when it changes, when a volume comes that can serve it
// (the index wakes one claim, not all), when a volume that it names or that
// refers to it changes, and when its class or a default class comes. There is no
// periodic pass.
package claim
