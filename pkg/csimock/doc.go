// Package csimock is an in-memory CSI driver for tests, demos and CI: the
// Identity, Controller, GroupController and Node services of the Container
// Storage Interface, version 1.13, over a unix socket.
//
// It is made to be observed and to be broken on purpose:
//
//   - every capability is a switch; one that is off is not advertised and its
//     calls answer Unimplemented (see Capability);
//   - Calls and the call log file give every finished call in order, written
//     before its response leaves (see Call);
//   - scripted faults delay, hang, fail or cut off a method, for all volumes or
//     for one, before or after its work is done (see Fault);
//   - a state file, when asked for, is rewritten before the response to the
//     call that changed it leaves, so a restarted driver knows everything that
//     it ever confirmed;
//   - volumes and the storage backend have health conditions, which are part of
//     the state (see Condition).
//
// How a call travels: the interceptor refuses it if its capability is off, lets
// the first matching fault strike, runs the handler, saves the state, lets a
// fault that comes afterwards strike, appends the call to the log, and only
// then answers.
//
// Invariants:
//
//   - a volume ID is never used for a second volume, not even after a restart
//     without the state file;
//   - a volume that is published or staged anywhere is never deleted;
//   - a snapshot outlives its source volume;
//   - neither secrets nor parameters reach the call log, and secrets are not
//     kept anywhere.
//
// What it does not do: it stores no data and mounts nothing. A target path is
// an ordinary directory, or a file for a block volume, made by
// NodePublishVolume and removed with its contents by NodeUnpublishVolume. The
// alpha service SnapshotMetadata is left out: without data there are no changed
// blocks to list.
package csimock
