// Package protection takes kubernetes.io/pvc-protection off claims that are being
// deleted once no pod uses them: it executes [protection.DecideClaim]. A claim is
// looked at when it changes and when a pod that refers to it goes. Before the
// finalizer comes off, the pods of the namespace are listed live; claims that are
// deleted at the same time share one list.
package protection
