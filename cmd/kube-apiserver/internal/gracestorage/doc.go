// Package gracestorage decides on the deadline of a custom resource in each write, around the storage that a stock API
// server uses. Package graceful has the decisions, package window the form in etcd.
//
//	DELETE -> Handler puts an empty holder into the context -> decoding, admission; Admission, the last plugin,
//	          copies the grace period into the holder
//	       -> Store.Delete -> GuaranteedUpdate: the deletion before -> upstream's function -> graceful.Decide
//	          -> deletionTimestamp, deletionGracePeriodSeconds and annotation of the object are kept or set
//
// Any other write is the same without a holder. The storage asks no verb: it compares the object before and after, so
// Go callers without a request, such as the deletion of a CRD, are covered.
package gracestorage
