// Package provisioning creates volumes for claims: it observes a claim, executes what
// [provision.Decide] decides, one action after another, and waits. No other package calls
// CreateVolume, creates PersistentVolumes, or decides about journal entries.
//
// The files in the order in which a claim goes through them; calls go down:
//
//	controller.go   Reconcile: observe, decide, execute, until the decision is to wait
//	observe.go      from claim, caches and memory to a provision.State
//	execute.go      one action; the live reads, and the removal of the selected node
//	prepare.go      the request
//	entry.go        the journal entry: written before a call, removed once its volume is recorded
//	create.go       CreateVolume, and what its answer says
//	save.go         the PersistentVolume, or the end of a volume that no claim can use
//	wait.go         the next pass; events.go: what users are told
//	observation.go  what one pass knows of a claim; memory.go: what is known between passes
//
// Beside that way: takeover.go (entries of earlier processes), watch.go (what enqueues a claim),
// caches.go (which objects are cached).
//
// A claim is reconciled after a change of the claim, its class or its attributes class,
// after an event of the PersistentVolume with the claim's volume name, after the take-over
// of a journal entry of an earlier process, and with backoff after a failure.
//
//	fact about a claim                     source                 after a restart
//	claim, class, PersistentVolume         caches, live reads     the same
//	entry, request, superseded requests    journal, claimRecord   inherited
//	created volume, its handle             claimRecord            request repeated
//	volume being discarded, its handle     journal, claimRecord   request repeated
//	creation of the claim was seen         Creations              forgotten
//	unfit node, failure, why unresolved    claimRecord            forgotten
//
// Invariants of the shell, beside those of package provision:
//
//  1. A lock per volume name, shared with pkg/provisioner/deletion, keeps CreateVolume and
//     DeleteVolume of one volume from overlapping.
//  2. The deletion loop removes no finalizer and deletes no volume before
//     [Controller.RemoveEntry] has removed the claim's entry durably.
//  3. CreateVolume needs a live read of the claim, except for a claim that came by a watch
//     event and has no earlier call, no entry and no PersistentVolume.
//  4. Only a live read proves that a claim is gone: the caches have only the driver's
//     objects ([Names]) and may be stale.
//  5. Every pass ends in success, in an error, with a planned retry, or in a wait for an
//     event. The number of steps in a pass is bounded.
//  6. Credentials are not remembered between calls. Events, logs and reasons hide the
//     values of secrets, even if the driver's error contains them.
//
// Start takes over the journal before the first claim is reconciled. Without permission to
// write Leases, with the gate ProvisioningJournal off, and for a request that is too large,
// a volume is created without an entry, as csi-provisioner does.
//
// The storage backend is behind an interface (pkg/provisioner/backend): a CSI driver or
// another provisioner.
//
// The package does not bind claims, does not reclaim recorded volumes, and does not
// write Leases: pkg/provisioner/journalstore does.
package provisioning
