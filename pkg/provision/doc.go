// Package provision turns a claim and its class into a CreateVolumeRequest, the
// driver's response into a PersistentVolume, and an error code into what is known of
// the volume. [Decide] takes a claim from the wish for a volume to a PersistentVolume.
//
// Before each CreateVolume call an entry with the request is durable in the journal
// (package journal). It is removed once the volume is recorded as a PersistentVolume,
// or known not to exist. The claim carries nothing and waits for nobody: the volume of
// a deleted claim is recorded, too, and reclaimed by its policy.
//
//	creation      claim wants a volume            deleted, bound elsewhere           other node needed
//	NotRequested  Prepare, ReadClaim, WriteEntry, RemoveEntry, Wait                       RemoveEntry, Reschedule
//	              Create
//	Requested          the same request again; a new   the same request again             the same request again
//	              one once it is LongRequested
//	Doubtful      a new request, the old one is   the same request again             Reschedule
//	              kept in the entry
//	FailedOnce        the same request again          the same request again             the same request again
//	Failed        RemoveEntry, then as NotRequested    RemoveEntry                             RemoveEntry, Reschedule
//	Created       Save, RemoveEntry                    Save, RemoveEntry                       WriteDiscarding, ReadBoth, Discard, RemoveEntry
//
// What comes before the table: a volume that is Recorded, and a claim that is Bound or
// Lost and names the volume (BoundOrLost): RemoveEntry, and the driver is never called. A
// created volume that is unusable, or whose name is taken, is discarded. An entry of a
// gone claim that is Overdue is MoveToUnresolved for the administrator. The finalizer of an
// earlier version is replaced by an entry, or removed.
//
// An entry of an earlier process is judged by live reads of claim and PersistentVolume:
//
//	entry                claim lives   gone, or bound elsewhere
//	Inherited            Adopt         Adopt
//	InheritedDiscarding  Adopt         Adopt
//	Untrusted              Adopt         MoveToUnresolved
//	UntrustedDiscarding    MoveToUnresolved      MoveToUnresolved
//
// Invariants, tested over every state, and in a model with crashes, lost answers,
// users and another leader:
//
//  1. A call needs a durable entry of the own term and a lease that lasts.
//  2. An entry is removed only for a recorded volume, a completed discard, a denial that
//     counts ([After]), or a Bound or Lost claim.
//  3. DeleteVolume follows from one case only, after an entry that says so and live
//     reads; never from a Untrusted entry.
//  4. A Bound or Lost claim is never asked for.
//  5. A volume that its user keeps is never recorded again.
//
// What the driver's error says of the volume, by code:
//
//	InvalidArgument, OutOfRange, ResourceExhausted,   NoVolume: at once, or if repeated long after
//	Unimplemented, PermissionDenied, Unauthenticated, an earlier call that is open
//	FailedPrecondition
//	NotFound                                          SourceMissing: no volume if it was the first call
//	AlreadyExists                                     Mismatch: superseded requests are tried in turn
//	Internal, Unknown, DataLoss                       Uncertain
//	any other                                         Unanswered
//
// What a claim or class asks for and this provisioner cannot serve is a [Refusal],
// never ignored. The KEP-2644 finalizer of a new PersistentVolume is written by
// [Skeleton].
//
// The package calls nobody, reads no clock and writes no journal: the controller in
// pkg/provisioner/provisioning does. It does not reclaim volumes: package reclaim does.
package provision
