// Package provision turns a claim and its class into a CreateVolumeRequest, the
// driver's response into a PersistentVolume, and an error code into what is known of
// the volume. [Decide] returns the steps from a claim to a PersistentVolume.
//
// Before each CreateVolume call an entry with the request is durable in the journal
// (package journal). It is removed once the volume is recorded as a PersistentVolume,
// or known not to exist. The claim has no finalizer of ours: the volume of a
// deleted claim is recorded as well, and reclaimed by its policy.
//
//	creation      claim wants a volume             deleted, bound elsewhere   other node needed
//	NotRequested  Prepare, ReadClaim, WriteEntry,  RemoveEntry, Wait          RemoveEntry, Reschedule
//	              Create
//	Requested     UseStored, Create; Prepare once  UseStored, Create          UseStored, Create
//	              the request is LongRequested
//	Doubtful      Prepare, Create; the entry       UseStored, Create          Reschedule
//	              keeps the old request
//	FailedOnce    UseStored, Create                UseStored, Create          UseStored, Create
//	Failed        RemoveEntry, as NotRequested     RemoveEntry                RemoveEntry, Reschedule
//	Created       Announce, Save, RemoveEntry      Announce, Save,            WriteDiscarding, ReadBoth,
//	                                               RemoveEntry                Discard, RemoveEntry
//
// Two cases precede the table: a recorded volume, and a claim that is Bound or Lost and
// names the volume. Their entry is removed, and CreateVolume is never called. A created
// volume that is unusable, or whose name is in use, is discarded. An Overdue entry of a
// claim that is gone becomes unresolved.
//
// An entry of an earlier process is judged by live reads of claim and PersistentVolume:
//
//	entry                claim lives       gone, or bound elsewhere
//	Inherited            Adopt             Adopt
//	Untrusted            Adopt             MoveToUnresolved
//	InheritedDiscarding  MoveToUnresolved  MoveToUnresolved
//	UntrustedDiscarding  MoveToUnresolved  MoveToUnresolved
//
// Invariants, tested over every state, and in a model with crashes, lost answers,
// users and another leader:
//
//  1. A call needs a durable entry of the own term and a lease that lasts.
//  2. An entry is removed only for a recorded volume, a completed discard, a failure that
//     counts ([After]), or a Bound or Lost claim.
//  3. DeleteVolume follows from one case only, after an entry Discarding and live
//     reads, for a volume that this process certainly made; never from an inherited entry.
//     Another volume, as of a claim that came back with a restore of etcd, may hold data.
//  4. CreateVolume is never called for a claim that is Bound or Lost.
//  5. A volume that its user keeps is never recorded again. No finalizer keeps the
//     PersistentVolume of a volume with the policy Retain, and users remove finalizers by hand,
//     so the entry announces each PersistentVolume before it is created; the volume of an announced
//     entry without a claim is left alone.
//
// What is known of the volume after an error, by code:
//
//	InvalidArgument, OutOfRange, FailedPrecondition   NoVolume: at once, or if repeated long after
//	                                                  an unanswered call
//	ResourceExhausted, Unimplemented,                 Unchanged: no volume if it was the first call
//	PermissionDenied, Unauthenticated
//	NotFound                                          SourceMissing: no volume if it was the first call
//	AlreadyExists                                     Mismatch: superseded requests are tried in turn
//	Internal, Unknown, DataLoss                       Uncertain
//	any other                                         Unanswered
//
// A field of claim or class that this provisioner cannot serve leads to a [Refusal]; no
// field is ignored. The KEP-2644 finalizer of a new PersistentVolume is written by
// [Assignment.ApplyTo].
//
// [WaitFor] returns how a claim waits between two passes: its event, and its retry.
//
// The package has no client and no clock, and writes no journal: the controller in
// pkg/provisioner/provisioning does. It does not reclaim volumes: package reclaim does.
package provision
