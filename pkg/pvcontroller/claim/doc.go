// Package claim binds claims to volumes: it executes [binding.DecideClaim], in the
// workqueue "claims".
//
// A claim is enqueued when one of these changes: the claim, a volume that it names or
// that refers to it, its storage class, the default class, its pods. A new free volume
// enqueues one waiting claim that it satisfies ([binding.Index]). There is no periodic
// resync; only a waiting claim is requeued after RequeueAfter.
//
// Claims that an in-tree plugin provisions for are handed to [InTree].
package claim
