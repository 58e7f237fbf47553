// Package alive is the signal that a whole cluster goes away, for operators with resources outside of it.
//
// One Alive, named "cluster", stands for the cluster. Its owner permits the teardown (spec.protected is false, with the
// ID of the cluster and the time of the permission), and then deletes it. A deletionTimestamp alone permits nothing: the
// deletion of the CRD sets it on a protected Alive. An operator takes part with a finalizer of its own:
//
//	call       when                                            effect
//	Register   whenever the operator sees Alive                adds the finalizer, unless Alive is being deleted
//	CleanUp    on each event of Alive, and before each step    true while the operator may delete its resources
//	Done       once all of them are gone                       removes the finalizer
//
// CleanUp is true with all of these only, and ends with any of them:
//
//	deletionTimestamp   set
//	spec.protected      false
//	condition Started   True: the runner has refused new volumes, and made kept volumes safe
//	time left           now is before spec.confirmedAt + spec.timeout: a restored etcd starts nothing
//
// ClusterRole exeunt-alive-participant has the rights that an operator needs; examples/bucket-operator is a whole one.
package alive
