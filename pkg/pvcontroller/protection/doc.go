// Package protection adds kubernetes.io/pvc-protection to claims, and removes the
// finalizer from claims that are being deleted once no pod uses them: it executes
// [protection.DecideClaim], in the workqueue "pvcprotection".
//
// A claim is enqueued when it changes and when a pod that refers to it is deleted. Before
// the finalizer is removed, the pods of the namespace are listed from the API server;
// claims that are deleted at the same time share one list.
package protection
