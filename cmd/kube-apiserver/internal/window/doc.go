// Package window converts custom resources in their grace period between the form that clients see and the form in
// etcd, which a stock API server can finish.
//
//	in etcd   deletionTimestamp is the request, deletionGracePeriodSeconds 0, the deadline is in the annotation
//	          exeunt.io/deletion-window
//	served    deletionTimestamp is the deadline, deletionGracePeriodSeconds above 0
//
// A stock API server never removes an object whose deletionGracePeriodSeconds is above 0: after a rollback the object
// would stay for ever. So no such value reaches etcd, but that of another program whose object has no room for the
// annotation: it stays as it is. Each value that a stock API server wrote is the same, byte for
// byte, after it was decoded and encoded: a write that changes nothing stays none.
package window
