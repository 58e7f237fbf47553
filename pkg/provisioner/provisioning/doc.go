// Package provisioning creates volumes for claims: it observes a claim, executes what
// [provision.Decide] decides, step after step, and waits. It alone has volumes created,
// creates PersistentVolumes of the driver, and decides what the journal's entries stand
// for.
//
// A claim is reconciled when it, its class or its attributes class changes, when a
// PersistentVolume of its own name appears or goes, when a journal entry of an earlier
// process names it, and after a failure, with backoff.
//
//	what is known of a claim               where                  after a restart
//	claim, class, PersistentVolume         caches, live reads     the same
//	entry, request, superseded requests    journal, claimRecord   inherited
//	created volume, its handle             claimRecord            requested again
//	volume being discarded, its handle     journal, claimRecord   inherited
//	unfit node, failure, why unresolved    claimRecord            found out again
//
// Invariants of the shell, beside those of package provision:
//
//  1. One worker at a time has a volume's name, shared with pkg/provisioner/deletion:
//     CreateVolume and DeleteVolume of one volume never overlap.
//  2. The deletion side removes no finalizer and no volume before [Controller.RemoveEntry]
//     made the removal of the claim's entry durable.
//  3. The live read of a claim before CreateVolume is left out only if the claim came by
//     the watch and neither a call, an entry nor a PersistentVolume is known of it.
//  4. A claim is gone only if a live read says so; the caches of claims and volumes have
//     the driver's own ones ([Names]), and may be stale.
//  5. Every pass ends in success, an error, a planned retry, or in a state that an event
//     changes; a pass has a bounded number of steps.
//  6. Credentials are not remembered between calls. Values of a secret that a
//     driver repeats are hidden in events, logs and reasons.
//
// Start takes over the journal before any claim is served. Without the right to write
// Leases, with the gate ProvisioningJournal off, and for a request that is too large, a
// volume is created without an entry, as csi-provisioner does.
//
// The storage backend is behind an interface (pkg/provisioner/backend): a CSI driver or
// another provisioner.
//
// The package does not bind claims, does not reclaim recorded volumes, and does not
// write Leases: pkg/provisioner/journal does.
package provisioning
