// Package provisioner runs a dynamic provisioner that implements
// [sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller.Provisioner], and
// optionally BlockProvisioner, Qualifier and DeletionGuard of the same package. The engine
// is that of the program provisioner, for which a CSI driver is one implementation.
//
// A program replaces
//
//	controller.NewProvisionController(logger, client, name, p, controller.Threadiness(10)).Run(ctx)
//
// by
//
//	err := provisioner.NewProvisionController(logger, client, name, p, provisioner.Threadiness(10)).Run(ctx)
//
// and ends when Run returns: an error means that another process may lead now.
//
// What changes:
//
//	v10 alone                                           this package
//	finalizer only with AddFinalizer(true), on          finalizer by default, in the first write of volumes
//	volumes of every policy at first                    with policy Delete, never on others
//	volume forgotten if the process ends between        the journal has an entry before Provision is called; the
//	Provision and the PersistentVolume                  next leader records the volume, or deletes it by its policy
//	gives up after 15 failures                          retries with backoff until there is an answer
//	caches decide about deletion                        claim and volume are read live before Delete
//	Delete again while the cache is stale               Delete once for each volume
//	claims and volumes of all provisioners in memory    only its own, and static volumes
//	a PersistentVolume of the same name is success      only if it names the claim
//	exits once the context ends                         Run waits for the calls that are under way, 4s with election
//	a panic of the provisioner ends the process         the call has failed: event, stack in the log, retry
//	a process on each node with LeaderElection(false)   the same with the option Node: one journal for each process
//	event Provisioning before each call                 once the first call takes longer than 2s
//	event for each failure                              the same failure again after 30s, then less often
//	options of the type []func(*...) error              options of the type []provisioner.Option
//
// A program on another version than v10 moves to v10 first: the arguments of
// NewProvisionController and the fields of ProvisionOptions differ between versions.
//
// # States of a failed call
//
// Provision returns a state with an error. With a nil error the state does not count.
//
//	ProvisioningFinished      There is no volume. The claim is retried with backoff. After an earlier call that may
//	                          have created the volume, the answer counts once it is repeated ten minutes later;
//	                          the same request is repeated until then.
//	ProvisioningInBackground  There may be a volume. The same request is repeated with backoff until another
//	                          answer comes, also after a restart, and also if the claim is deleted.
//	ProvisioningNoChange      What was known before the call is still true. For the first call: Finished.
//	ProvisioningReschedule    As Finished. If the scheduler has selected a node, it selects another one. Without a
//	                          selected node the claim is retried.
//	any other                 As ProvisioningInBackground.
//
// An error of a call whose context has ended, by ProvisionTimeout or because the process
// ends, is ProvisioningInBackground, whatever the state says. An IgnoredError leaves the
// claim to another provisioner: no event, and a retry after the longest retry interval.
// A nil volume with a nil error is an error that says nothing about the volume.
// With a Qualifier, a claim for which ShouldProvision returns false is neither provisioned
// nor reported; it is retried after the longest retry interval. ShouldProvision is asked
// before the first call only: once a call may have created the volume, it is repeated until
// there is an answer.
//
// Provision is called for a deleted claim only to find out about the volume of an
// earlier call. The volume is recorded as a PersistentVolume and reclaimed by its policy,
// like any other volume.
//
// # Deletion
//
// Delete is called for a released volume with policy Delete, after live reads of volume
// and claim, while no other PersistentVolume of this provisioner, and no static one
// without a CSI source, has the same source, or a directory in that host path, local path or
// NFS export. A nil error is remembered: only the writes to the API server are retried. Any other error is an event VolumeFailedDelete and retried with backoff, except
// an IgnoredError: no event. With a DeletionGuard, Delete is not called while ShouldDelete
// returns false. In both cases the volume is retried after the longest retry interval.
//
// Delete is also called for a volume that was created but cannot be recorded: it is
// unusable, the API server's validation (no admission webhook) refuses its PersistentVolume, or another
// volume has its name; but only if the volume is certainly new, that is, if this process has seen the creation
// of the claim. Otherwise the volume is left alone, with an event. The argument is the volume that Provision returned, with the name of the
// claim's volume; the journal has it until Delete succeeds.
//
// # What a provisioner must guarantee
//
//   - Delete succeeds for a volume that no longer exists.
//   - Provision is idempotent by PVName: a second call with the same options returns the
//     existing volume. A provisioner that would create a second volume needs the option
//     [Idempotent](false): after a crash in the middle of a call Provision is not called for the
//     request again. The journal entry is kept for an administrator, "exeunt journal list" names
//     the volume, and a claim that still waits is served by a new call. The same holds for
//     an unrecorded volume whose deletion a crash has interrupted. Without a crash
//     ProvisioningInBackground is answered by another call in any case, as in v10.
//   - Volumes have distinct sources, or the option [SharedSources](true) is set. Host paths
//     and local volumes of different nodes are distinct by their node affinity.
//   - The returned PersistentVolume has a source, a capacity and access modes. Otherwise
//     Delete is called for the volume, and the claim is retried. The name is PVName.
//   - The options hold no secret: the journal stores class, claim and node of a call,
//     without managedFields and the last applied configuration. The node has no images,
//     conditions and attached volumes in any call.
//
// # Options of v10 that are absent
//
// They would have no meaning here, so that a program that uses them does not compile.
//
//	ResyncPeriod                                no resync: every wait ends with an event or a planned retry
//	RateLimiter, ExponentialBackOffOnError      RetryInterval
//	CreateProvisionedPV...                      the PersistentVolume is written until the API server takes it,
//	                                            or refuses it as invalid
//	FailedProvisionThreshold,
//	FailedDeleteThreshold                       nothing is given up
//	ClaimsInformer, VolumesInformer,
//	ClassesInformer                             the caches hold no objects of other provisioners
//	AdditionalProvisionerNames                  one controller for each name
//
// AddFinalizer is on by default. All other options have the defaults of v10.
//
// # Rights
//
// Beside those that v10 needs without AddFinalizer:
//
//   - patch on PersistentVolumes, for the finalizer. Without, volumes are deleted in the
//     storage system, their PersistentVolumes remain, with the event VolumeFailedDelete;
//   - get on PersistentVolumes and PersistentVolumeClaims, for live reads;
//   - get on Nodes, if classes wait for the first consumer. v10 needs it unless it has a
//     NodesLister. Without, such a lister serves all calls;
//   - patch on PersistentVolumeClaims, for claims that are rescheduled;
//   - list, watch, get, create and update on Leases in the namespace of the leader lease,
//     for the journal. Without, volumes are created without journal entries after a
//     minute, with the event JournalForbidden and a metric.
//
// See examples/hostpath-provisioner/deploy. The journal writes up to 20 times a second:
// the client's QPS should not be lower than 50.
package provisioner
